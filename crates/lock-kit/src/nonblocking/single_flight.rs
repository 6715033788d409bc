//! A value that is computed once for all its callers.

use std::time::Duration;

use lock_core::AcquireError;
use lock_host::{LockOptions, Setting, random_u64};

use super::cache::Cache;
use super::waiting::until_lost;
use super::{Client, Guard, Mutex, both};
use crate::single_flight::{CacheState, Entry, FlightPlan, RemainingWait, WaitMode};

/// A value that is computed once for all its callers, in all processes. Made by
/// [`Kit::single_flight`](super::Kit::single_flight).
///
/// The lock is `single-flight:` and the key. If the process that computes dies, another one computes after the ttl of that lock.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::{self as kit, nonblocking, nonblocking::{Cache, Kit}}; }
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use leasehold::{Cache, Kit};
/// use leasehold::kit::{Entry, Found};
///
/// struct Squares(Mutex<HashMap<String, u64>>); // in production, a Redis, with the ttl of each entry
///
/// impl Cache for Squares {
///     type Value = u64;
///     type Error = Box<dyn std::error::Error + Send + Sync>;
///
///     async fn get(&self, key: &str) -> Result<Option<Found<u64>>, Self::Error> {
///         Ok(self.0.lock().unwrap().get(key).copied().map(Found::new))
///     }
///
///     async fn put(&self, entry: Entry<'_, u64>) -> Result<(), Self::Error> {
///         self.0.lock().unwrap().insert(entry.key.to_owned(), *entry.value);
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// let cache = Squares(Mutex::default());
/// for _ in 0..2 {
///     let square = locks.single_flight("square:7").get_or_compute(&cache, async || Ok(7 * 7)).await?; // computed once
///     assert_eq!(square, 49);
/// }
/// # Ok(())
/// # }
/// ```
#[both]
#[derive(Clone, Debug)]
#[must_use = "nothing is looked up until it is asked for"]
pub struct SingleFlight {
    client: Client,
    plan: FlightPlan,
}

#[both]
impl SingleFlight {
    pub(super) fn new(client: &Client, key: &str) -> Self {
        Self { client: client.clone(), plan: FlightPlan::new(key) }
    }

    /// Sets for how long a value is cached; 60 s if not set.
    pub fn value_ttl(mut self, value_ttl: Duration) -> Self {
        self.plan.value_ttl = value_ttl;
        self
    }

    /// Sets for how long an absent value (see [`Cache::is_absent`]) is cached; as long as any other value if not set. Usually shorter,
    /// because the value may be created.
    pub fn absent_ttl(mut self, absent_ttl: Duration) -> Self {
        self.plan.absent_ttl = Some(absent_ttl);
        self
    }

    /// Sets by how many percent each ttl is shortened at most, at random, so that values which were cached at the same time do not expire
    /// at the same time: 0 to 100, and 10 if not set.
    pub fn jitter_percent(mut self, jitter_percent: u8) -> Self {
        self.plan.jitter_percent = jitter_percent;
        self
    }

    /// Sets for how long callers may use an expired value while one caller computes it anew; not at all if not set.
    ///
    /// The cache keeps each value longer by this time, and has to report how much of its time is left: see
    /// [`Found::left`](crate::Found::left).
    pub fn stale_for(mut self, stale_for: Duration) -> Self {
        self.plan.stale_for = stale_for;
        self
    }

    ::lock_host::option_setters!(all);

    ::lock_host::option_setters!(
        each "Sets how long to wait for a value that another caller computes; without limit if not set."
    );

    ::lock_host::option_setters!(on_unavailable);

    fn set(mut self, setting: Setting) -> Self {
        self.plan.options.apply(setting);
        self
    }

    fn mutex(&self, options: LockOptions) -> Mutex {
        self.client.mutex(self.plan.name()).options(options)
    }

    /// Refuses what cannot be done. The wait begins.
    fn begin(&self) -> Result<RemainingWait, AcquireError> {
        self.plan.check()?;
        let lock = self.mutex(self.plan.options.clone()).member()?;
        Ok(RemainingWait::of(lock))
    }

    /// Returns the value from the cache, or computes and caches it. Of all callers that miss, one computes. The others wait,
    /// and continue together when the value is there; at a store without read locks (`redlock://`), one by one.
    ///
    /// If the lease is lost during the computation, nothing is cached after that. A value that was sent before the loss may arrive later:
    /// a cache that has to refuse it checks the [token](Entry::token).
    ///
    /// While the lock store is unreachable, a caller gets the stale value if there is one, and otherwise the error after an operation
    /// timeout; with [`on_unavailable`](Self::on_unavailable), it can wait for the store. For two seconds after one caller has found the store
    /// unreachable, callers of the same client with a stale value do not ask it; then one of them asks again.
    ///
    /// If the computation fails, nothing is cached, and the callers that waited compute one after the other, each within its
    /// [`wait`](Self::wait).
    ///
    /// # Errors
    /// The cache and the computation return their own errors. `Error::Acquire`: an option is invalid, the wait timed out, or the store
    /// failed; nothing was computed. `Error::Lost`: the lease was lost during the computation.
    ///
    /// # Cancel safety
    /// The computation is stopped (dropped at its next await point) when the lease is lost. Dropping the future drops the computation, and releases the lock in the background: another caller computes.
    ///
    /// # Blocking
    /// For as long as the computation takes, here or elsewhere: for the latter, limited by the [`wait`](Self::wait). A thread cannot be
    /// stopped: a computation that takes longer than its lease runs to its end, but its value is not cached.
    pub async fn get_or_compute<C: Cache>(
        &self,
        cache: &C,
        compute: impl AsyncFnOnce() -> Result<C::Value, C::Error>,
    ) -> Result<C::Value, C::Error> {
        let wait = self.begin().map_err(lock_host::Error::from)?;
        let stale = match self.read(cache).await? {
            CacheState::Fresh(value) => return Ok(value),
            CacheState::Stale(value) if wait.is_store_away() => return Ok(value),
            CacheState::Stale(value) => Some(value),
            CacheState::Missing => None,
        };
        let guard = match (self.try_acquire(&wait).await.map_err(lock_host::Error::from)?, stale) {
            (Some(guard), _) => guard,
            (None, Some(stale)) => return Ok(stale),
            (None, None) => {
                if self.plan.wait_mode(&self.client.capabilities()) == WaitMode::Together {
                    self.wait_for_others(&wait).await.map_err(lock_host::Error::from)?;
                    if let CacheState::Fresh(value) | CacheState::Stale(value) = self.read(cache).await? {
                        return Ok(value);
                    }
                }
                self.acquire(&wait).await.map_err(lock_host::Error::from)?
            }
        };
        let done = self.compute_under(&guard, cache, compute).await;
        // The value is there, or nothing was cached: a release that fails changes neither.
        _ = guard.release().await;
        done
    }

    async fn read<C: Cache>(&self, cache: &C) -> Result<CacheState<C::Value>, C::Error> {
        Ok(self.plan.judge(cache.get(&self.plan.key).await?))
    }

    async fn try_acquire(&self, wait: &RemainingWait) -> Result<Option<Guard>, AcquireError> {
        wait.tried(self.mutex(self.plan.options.clone()).try_acquire().await)
    }

    async fn acquire(&self, wait: &RemainingWait) -> Result<Guard, AcquireError> {
        let acquired = self.mutex(wait.left(&self.plan.options)).acquire().await;
        acquired.map_err(|error| wait.failed(error))
    }

    /// Waits until nobody computes.
    async fn wait_for_others(&self, wait: &RemainingWait) -> Result<(), AcquireError> {
        let lock = self.client.rw_lock(self.plan.name()).read().options(wait.left(&self.plan.options));
        lock.acquire().await.map(drop).map_err(|error| wait.failed(error))
    }

    async fn compute_under<C: Cache>(
        &self,
        guard: &Guard,
        cache: &C,
        compute: impl AsyncFnOnce() -> Result<C::Value, C::Error>,
    ) -> Result<C::Value, C::Error> {
        // Another caller may have computed it between the read and the lock.
        if let CacheState::Fresh(value) = self.read(cache).await? {
            return Ok(value);
        }
        let work = async |guard: &Guard| {
            let value = compute().await?;
            // A computation that awaits nothing is not stopped, and neither is a thread.
            guard.check().map_err(lock_host::Error::from)?;
            let ttl = if cache.is_absent(&value) { self.plan.absent_ttl() } else { self.plan.value_ttl };
            let ttl = self.plan.spread(ttl, random_u64().unwrap_or_default());
            cache.put(Entry { key: &self.plan.key, value: &value, ttl, token: guard.fencing_token() }).await?;
            Ok(value)
        };
        until_lost(guard, work).await.map_err(lock_host::Error::from)?
    }
}
