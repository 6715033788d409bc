//! A lock that degrades to one of this process while the store is away.

use std::ops::Deref;

use lock_core::{AcquireError, BackendError};
use lock_host::{HoldError, Setting};

use super::waiting::in_turn;
use super::{Guard, Mutex, both};
use crate::degrading::{DegradingCall, Scoped, checked};
use crate::process_lock::LocalWaiter;

/// A lock that degrades to one of this process while the store is away. Made by [`Kit::degrading`](super::Kit::degrading).
///
/// For work that should rather be done twice than not at all: refilling a cache, sending a reminder. The guard says which of the
/// two it is: with [`Scope::Store`](crate::Scope::Store) it excludes all processes. With [`Scope::Process`](crate::Scope::Process)
/// it excludes this process only, and **other processes may hold the lock at the same time**.
///
/// The store is away once requests have failed with a [transient](lock_core::ErrorKind::is_transient) error for an operation
/// timeout (a sixth of the ttl, but at most a second), or until the wait is over, and one more request has failed as well. The
/// observers of the client are notified (`Degraded`). One finding serves all degrading locks of the client: for two seconds, none of them
/// asks the store, and then one caller does.
///
/// A guard of this process stays one until it is released, also when the store is back. It has no fencing token, so no resource
/// that checks tokens accepts what it does. It is never lost, and `max_hold` does not end it.
///
/// Within this process, all callers that acquire a lock in this way exclude each other, whatever the store says: first come, first served
/// over all clients of the store. (Clients that were given a pool do not know their server: for them, the name alone counts.) A
/// [`mutex`](lock_async::Client::mutex) of the same name does not know of this line: it asks the store alone, and gets the lock
/// although this process holds it with a degraded guard. So use `degrading` wherever this process uses the name.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::{self as kit, nonblocking, nonblocking::Kit}; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// use std::time::Duration;
/// use leasehold::Kit;
/// use leasehold::kit::Scope;
///
/// let guard = locks.degrading("refill:42").wait(Duration::from_secs(5)).acquire().await?;
/// match guard.scope() {
///     Scope::Store => println!("the only one anywhere"),
///     Scope::Process => println!("the only one in this process: {:?}", guard.error()),
/// }
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[both]
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Degrading(Mutex);

#[both]
impl Degrading {
    pub(super) fn new(mutex: Mutex) -> Self {
        Self(mutex)
    }

    ::lock_host::option_setters!(all);

    ::lock_host::option_setters!(each);

    fn set(self, setting: Setting) -> Self {
        Self(self.0.set(checked(setting)))
    }

    /// Waits for the lock: first for those of this process that came before, and then at the store.
    ///
    /// # Errors
    /// As [`Mutex::acquire`], but not for a store that is away.
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`].
    ///
    /// # Blocking
    /// For as long as [`wait`](Self::wait) allows, or until the [token](Self::cancelled_by) is cancelled, plus at most four operation
    /// timeouts.
    pub async fn acquire(&self) -> Result<DegradingGuard, AcquireError> {
        let call = DegradingCall::new(self.0.member()?);
        let waiter = call.join();
        loop {
            if !in_turn(&call, &waiter).await? {
                return self.too_late(call, waiter).await;
            }
            if let Some(outcome) = self.ask(&call).await?
                && let Some(held) = self.take(&call, &waiter, outcome)
            {
                return Ok(DegradingGuard { held, waiter });
            }
        }
    }

    /// The store's answer, or that it is away; `None` if the wait continues.
    async fn ask(&self, call: &DegradingCall) -> Result<Option<Result<Guard, BackendError>>, AcquireError> {
        if let Some(error) = call.known_away() {
            return Ok(Some(Err(error)));
        }
        match self.at_store(call).acquire().await {
            Ok(guard) => return call.tried(Ok(Some(guard))),
            Err(error) => _ = call.away(error)?,
        }
        // The wait may have been shorter than it takes to get an answer. If the lock is held, the wait continues.
        let again = self.0.try_acquire().await;
        call.tried(again)
    }

    /// The wait was over before its turn came.
    async fn too_late(&self, call: DegradingCall, waiter: LocalWaiter) -> Result<DegradingGuard, AcquireError> {
        if let Some(error) = call.timed_out_in_queue(&waiter) {
            return Err(error);
        }
        // The first one of this process still asks, which is no sign that anybody holds the lock.
        match self.0.try_acquire().await {
            Ok(guard) => {
                let held = guard.and_then(|guard| self.take(&call, &waiter, Ok(guard)));
                held.map(|held| DegradingGuard { held, waiter }).ok_or_else(|| call.timed_out(None))
            }
            Err(error) => Err(call.away(error)?.into()),
        }
    }

    /// Takes the lock if it is free; `None` if it is held, here or elsewhere.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Blocking
    /// For at most four operation timeouts.
    pub async fn try_acquire(&self) -> Result<Option<DegradingGuard>, AcquireError> {
        let call = DegradingCall::new(self.0.member()?);
        let waiter = call.join();
        if waiter.is_held() {
            return Ok(None);
        }
        let outcome = match call.known_away() {
            Some(error) => Some(Err(error)),
            None => {
                let mut answer = self.0.try_acquire().await;
                if let Err(error) = answer {
                    call.away(error)?;
                    answer = self.0.try_acquire().await;
                }
                call.tried(answer)?
            }
        };
        let outcome = waiter.after_earlier(outcome)?;
        let held = outcome.and_then(|outcome| self.take(&call, &waiter, outcome));
        Ok(held.map(|held| DegradingGuard { held, waiter }))
    }

    /// The hold; `None`, and nothing is held, if another caller of this process has been faster.
    fn take(
        &self,
        call: &DegradingCall,
        waiter: &LocalWaiter,
        outcome: Result<Guard, BackendError>,
    ) -> Option<Scoped<Guard>> {
        waiter.take().then(|| call.held(outcome, |waited, error| self.0.degraded(waited, error)))
    }

    /// The lock at the store, for what is left of the wait.
    fn at_store(&self, call: &DegradingCall) -> Mutex {
        let mutex = self.0.clone();
        if let Some(left) = call.left() { mutex.wait(left) } else { mutex }
    }
}

/// Proof that a [`Degrading`] lock is held, until it is released, dropped or lost. Its [`scope`](Scoped::scope) says whom it
/// excludes. Dropping it releases the lock: in async code in the background, and otherwise by blocking for at most an operation timeout.
///
/// ```compile_fail,E0308
/// async fn write(_: lock_core::FencingToken) {}
///
/// async fn work(guard: lock_kit::nonblocking::DegradingGuard) {
///     write(guard.fencing_token()).await; // there may be none
/// }
/// ```
#[both]
#[must_use = "the lock is released when the guard is dropped"]
#[derive(Debug)]
pub struct DegradingGuard {
    /// Dropped first, so that the next one in this process finds the lock free at the store.
    held: Scoped<Guard>,
    waiter: LocalWaiter,
}

#[both]
impl DegradingGuard {
    /// Releases the lock. If it is held at the store, waits for the answer. Success means that no loss was detected within
    /// the guard's [`scope`](Scoped::scope).
    ///
    /// # Errors
    /// As [`Guard::release`]; none for a guard of this process.
    ///
    /// # Cancel safety
    /// As [`Guard::release`].
    ///
    /// # Blocking
    /// For at most an operation timeout.
    pub async fn release(self) -> Result<(), HoldError> {
        let Self { held, waiter } = self;
        let released = match held.into_guard() {
            Some(guard) => guard.release().await,
            None => Ok(()),
        };
        drop(waiter);
        released
    }
}

impl Deref for DegradingGuard {
    type Target = Scoped<Guard>;

    fn deref(&self) -> &Scoped<Guard> {
        &self.held
    }
}
