//! A value that is computed once, although many ask for it.

use lock_blocking::{Client, Guard, Mutex};
use lock_core::AcquireError;
use lock_host::random_u64;

use crate::single_flight::setters::single_flight_setters;
use crate::single_flight::{Entry, Found, Look, Patience, Plan, Waiting};

/// Where values are kept: a Redis, a memcached, a table. The locks need not be in the same place.
///
/// # Errors
/// An error of the cache ends the call. For a cache that may be away, return `None` from `get` and `Ok` from `put`: then each
/// caller computes, one after the other.
pub trait Cache {
    /// What is kept. `Option<T>` for something that may not exist.
    type Value;
    /// Of the cache, of the computation, and of the lock.
    type Error: From<lock_host::Error>;

    /// What is kept under a key; `None` if there is nothing, or it has expired.
    fn get(&self, key: &str) -> Result<Option<Found<Self::Value>>, Self::Error>;

    /// Keeps a value for its ttl.
    fn put(&self, entry: Entry<'_, Self::Value>) -> Result<(), Self::Error>;

    /// Whether a value says that there is none, such as `None` for a user who does not exist. Such a value is cached as well, for the
    /// [`absent_ttl`](SingleFlight::absent_ttl). `false` for all if not implemented.
    fn is_absent(&self, _value: &Self::Value) -> bool {
        false
    }
}

/// A value that is computed once, although many callers in many processes ask for it. Made by
/// [`Kit::single_flight`](super::Kit::single_flight).
///
/// The lock is `single-flight:` and the key. If the process that computes dies, another one computes after the ttl of that lock.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::{self as kit, blocking}; }
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use leasehold::blocking::{Cache, Kit};
/// use leasehold::kit::{Entry, Found};
///
/// struct Squares(Mutex<HashMap<String, u64>>); // in production, a Redis, with the ttl of each entry
///
/// impl Cache for Squares {
///     type Value = u64;
///     type Error = Box<dyn std::error::Error + Send + Sync>;
///
///     fn get(&self, key: &str) -> Result<Option<Found<u64>>, Self::Error> {
///         Ok(self.0.lock().unwrap().get(key).copied().map(Found::new))
///     }
///
///     fn put(&self, entry: Entry<'_, u64>) -> Result<(), Self::Error> {
///         self.0.lock().unwrap().insert(entry.key.to_owned(), *entry.value);
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
/// let cache = Squares(Mutex::default());
/// for _ in 0..2 {
///     let square = locks.single_flight("square:7").get_or_compute(&cache, || Ok(7 * 7))?; // computed once
///     assert_eq!(square, 49);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is looked up until it is asked for"]
pub struct SingleFlight {
    client: Client,
    plan: Plan,
}

impl SingleFlight {
    pub(super) fn new(client: &Client, key: &str) -> Self {
        Self { client: client.clone(), plan: Plan::new(key) }
    }

    single_flight_setters!();

    /// Returns the value from the cache, or computes and caches it. Of all callers that find nothing, one computes. The others wait,
    /// and go on together when the value is there; at a store without read locks (`redlock://`), one by one.
    ///
    /// A thread cannot be stopped: a computation that takes longer than its lease runs to its end, but its value is not cached. What
    /// the cache was sent before the loss may arrive later: a cache that has to refuse it checks the [token](Entry::token).
    ///
    /// While the store of the locks is away, a caller gets the stale value if there is one, and otherwise the error after an operation
    /// timeout; with [`on_unavailable`](Self::on_unavailable), it can wait for the store. One caller that finds the store away saves
    /// those of the same client with a stale value the time: for two seconds, none of them asks the store, and then one does.
    ///
    /// If the computation fails, nothing is cached, and the callers that waited compute one after the other, each within its
    /// [`wait`](Self::wait).
    ///
    /// # Errors
    /// The cache and the computation return their own errors. `Error::Acquire`: an option is invalid, the wait timed out, or the store
    /// failed; nothing was computed. `Error::Lost`: the lease was lost during the computation.
    ///
    /// # Blocking
    /// For as long as the computation takes, here or elsewhere: for the latter, limited by the [`wait`](Self::wait).
    pub fn get_or_compute<C: Cache>(
        &self,
        cache: &C,
        compute: impl FnOnce() -> Result<C::Value, C::Error>,
    ) -> Result<C::Value, C::Error> {
        let patience = self.begin().map_err(lock_host::Error::from)?;
        let stale = match self.look(cache)? {
            Look::Fresh(value) => return Ok(value),
            Look::Stale(value) if patience.is_store_away() => return Ok(value),
            Look::Stale(value) => Some(value),
            Look::Missing => None,
        };
        let guard = match (self.try_acquire(&patience).map_err(lock_host::Error::from)?, stale) {
            (Some(guard), _) => guard,
            (None, Some(stale)) => return Ok(stale),
            (None, None) => {
                if self.plan.waiting(&self.client.capabilities()) == Waiting::Together {
                    self.wait_for_others(&patience).map_err(lock_host::Error::from)?;
                    if let Look::Fresh(value) | Look::Stale(value) = self.look(cache)? {
                        return Ok(value);
                    }
                }
                self.acquire(&patience).map_err(lock_host::Error::from)?
            }
        };
        let done = self.compute_under(&guard, cache, compute);
        // The value is there, or nothing was cached: a release that fails changes neither.
        _ = guard.release();
        done
    }

    fn look<C: Cache>(&self, cache: &C) -> Result<Look<C::Value>, C::Error> {
        Ok(self.plan.judge(cache.get(&self.plan.key)?))
    }

    fn try_acquire(&self, patience: &Patience) -> Result<Option<Guard>, AcquireError> {
        patience.tried(self.mutex(self.plan.options.clone()).try_acquire())
    }

    fn acquire(&self, patience: &Patience) -> Result<Guard, AcquireError> {
        let acquired = self.mutex(patience.left(&self.plan.options)).acquire();
        acquired.map_err(|error| patience.failed(error))
    }

    /// Waits until nobody computes.
    fn wait_for_others(&self, patience: &Patience) -> Result<(), AcquireError> {
        let lock = self.client.rw_lock(self.plan.name()).read().options(patience.left(&self.plan.options));
        lock.acquire().map(drop).map_err(|error| patience.failed(error))
    }

    fn compute_under<C: Cache>(
        &self,
        guard: &Guard,
        cache: &C,
        compute: impl FnOnce() -> Result<C::Value, C::Error>,
    ) -> Result<C::Value, C::Error> {
        // Another caller may have computed it between the look and the lock.
        if let Look::Fresh(value) = self.look(cache)? {
            return Ok(value);
        }
        // The cache may have answered late, and another caller may compute by now.
        guard.check().map_err(lock_host::Error::from)?;
        let value = compute()?;
        // A thread cannot be stopped.
        guard.check().map_err(lock_host::Error::from)?;
        let ttl = if cache.is_absent(&value) { self.plan.absent_ttl() } else { self.plan.value_ttl };
        let ttl = self.plan.spread(ttl, random_u64().unwrap_or_default());
        cache.put(Entry { key: &self.plan.key, value: &value, ttl, token: guard.fencing_token() })?;
        Ok(value)
    }
}
