//! A lock that degrades to one of this process while the store is away.

use std::ops::Deref;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use lock_blocking::{CancelToken, Guard, Mutex};
use lock_core::{AcquireError, BackendError, Lost};
use lock_host::{HoldError, Setting};

use crate::degrading::{Scoped, Wish, checked};
use crate::process::Place;

/// A lock that degrades to one of this process while the store is away. Made by [`Kit::degrading`](super::Kit::degrading).
///
/// For work that should rather be done twice than not at all: refilling a cache, sending a reminder. The guard says which of the
/// two it is: with [`Scope::Store`](crate::Scope::Store) it excludes all processes. With [`Scope::Process`](crate::Scope::Process)
/// it excludes this process only, and **other processes may hold the lock at the same time**.
///
/// The store is away once requests have failed with a [transient](lock_core::ErrorKind::is_transient) error for an operation
/// timeout (a sixth of the ttl, but at most a second), or until the wait is over, and one more request has failed as well. The
/// observers of the client are told (`Degraded`). One finding serves all degrading locks of the client: for two seconds, none of them
/// asks the store, and then one caller does.
///
/// A guard of this process stays one until it is released, also when the store is back. It has no fencing token, so no resource
/// that checks tokens accepts what it does. It is never lost, and `max_hold` does not end it.
///
/// Within this process, all who acquire a lock in this way exclude each other, whatever the store says: first come, first served
/// over all clients of the store. (Clients that were given a pool do not know their server: for them, the name alone counts.) A
/// [`mutex`](lock_blocking::Client::mutex) of the same name does not know of this line: it asks the store alone, and gets the lock
/// although this process holds it with a degraded guard. So use `degrading` wherever this process uses the name.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::{self as kit, blocking}; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
/// use std::time::Duration;
/// use leasehold::blocking::Kit;
/// use leasehold::kit::Scope;
///
/// let guard = locks.degrading("refill:42").wait(Duration::from_secs(5)).acquire()?;
/// match guard.scope() {
///     Scope::Store => println!("the only one anywhere"),
///     Scope::Process => println!("the only one in this process: {:?}", guard.error()),
/// }
/// guard.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Degrading(Mutex);

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
    /// # Blocking
    /// For as long as [`wait`](Self::wait) allows, or until the [token](Self::cancelled_by) is cancelled, plus at most four operation
    /// timeouts.
    pub fn acquire(&self) -> Result<DegradingGuard, AcquireError> {
        let wish = Wish::new(self.0.member()?);
        let place = wish.join();
        loop {
            if !in_turn(&wish, &place)? {
                return self.too_late(wish, place);
            }
            if let Some(outcome) = self.ask(&wish)?
                && let Some(held) = self.take(&wish, &place, outcome)
            {
                return Ok(DegradingGuard { held, place });
            }
        }
    }

    /// What the store says, or that it is away; `None` if the rest of the wait goes on.
    fn ask(&self, wish: &Wish) -> Result<Option<Result<Guard, BackendError>>, AcquireError> {
        if let Some(error) = wish.known_away() {
            return Ok(Some(Err(error)));
        }
        match self.at_store(wish).acquire() {
            Ok(guard) => return wish.tried(Ok(Some(guard))),
            Err(error) => _ = wish.away(error)?,
        }
        // The wait may have been shorter than it takes to get an answer. If the lock is held, the rest of the wait goes on.
        let again = self.0.try_acquire();
        wish.tried(again)
    }

    /// The wait was over before its turn came.
    fn too_late(&self, wish: Wish, place: Place) -> Result<DegradingGuard, AcquireError> {
        if let Some(error) = wish.over_in_line(&place) {
            return Err(error);
        }
        // The first one of this process still asks, which is no sign that anybody holds the lock.
        match self.0.try_acquire() {
            Ok(guard) => {
                let held = guard.and_then(|guard| self.take(&wish, &place, Ok(guard)));
                held.map(|held| DegradingGuard { held, place }).ok_or_else(|| wish.timed_out(None))
            }
            Err(error) => Err(wish.away(error)?.into()),
        }
    }

    /// Takes the lock if it is free; `None` if it is held, here or elsewhere.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
    ///
    /// # Blocking
    /// For at most four operation timeouts.
    pub fn try_acquire(&self) -> Result<Option<DegradingGuard>, AcquireError> {
        let wish = Wish::new(self.0.member()?);
        let place = wish.join();
        if place.is_held() {
            return Ok(None);
        }
        let outcome = match wish.known_away() {
            Some(error) => Some(Err(error)),
            None => {
                let mut answer = self.0.try_acquire();
                if let Err(error) = answer {
                    wish.away(error)?;
                    answer = self.0.try_acquire();
                }
                wish.tried(answer)?
            }
        };
        let outcome = place.after_earlier(outcome)?;
        let held = outcome.and_then(|outcome| self.take(&wish, &place, outcome));
        Ok(held.map(|held| DegradingGuard { held, place }))
    }

    /// What is held now; `None`, and nothing is, if somebody else of this process has been faster.
    fn take(&self, wish: &Wish, place: &Place, outcome: Result<Guard, BackendError>) -> Option<Scoped<Guard>> {
        place.take().then(|| wish.held(outcome, |waited, error| self.0.degraded(waited, error)))
    }

    /// The lock at the store, for what is left of the wait.
    fn at_store(&self, wish: &Wish) -> Mutex {
        let mutex = self.0.clone();
        if let Some(left) = wish.left() { mutex.wait(left) } else { mutex }
    }
}

/// Waits for those of this process that came before. False if the wait is over first.
fn in_turn(wish: &Wish, place: &Place) -> Result<bool, AcquireError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let _watch = wish.cancel().map(|cancel| {
        let waker = waker.clone();
        cancel.watch(move || waker.wake())
    });
    loop {
        if let Poll::Ready(turn) = place.poll_first(&waker) {
            return turn.map(|()| true);
        }
        if wish.cancel().is_some_and(CancelToken::is_cancelled) {
            return Err(AcquireError::Cancelled);
        }
        match wish.left() {
            Some(Duration::ZERO) => return Ok(false),
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}

/// Wakes a thread that waits for its turn.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Proof that a [`Degrading`] lock is held, until it is released, dropped or lost. Its [`scope`](Scoped::scope) says whom it
/// excludes.
///
/// Dropping it releases the lock, and blocks for at most an operation timeout.
///
/// ```compile_fail,E0308
/// fn write(_: lock_core::FencingToken) {}
///
/// fn work(guard: lock_kit::blocking::DegradingGuard) {
///     write(guard.fencing_token()); // there may be none
/// }
/// ```
#[must_use = "the lock is released when the guard is dropped"]
#[derive(Debug)]
pub struct DegradingGuard {
    /// Dropped first, so that the next one in this process finds the lock free at the store.
    held: Scoped<Guard>,
    place: Place,
}

impl DegradingGuard {
    /// Waits until the hold is lost, but for at most `patience`, as [`Guard::lost_within`]. A guard of this process is never lost:
    /// for it, this sleeps that long and returns `None`.
    ///
    /// # Blocking
    /// For at most `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<Lost> {
        let Some(guard) = self.held.at_store() else {
            thread::sleep(patience);
            return None;
        };
        guard.lost_within(patience)
    }

    /// Releases the lock. If it is held at the store, waits for the answer. Success means that no loss was detected within
    /// the guard's [`scope`](Scoped::scope).
    ///
    /// # Errors
    /// As [`Guard::release`]; none for a guard of this process.
    ///
    /// # Blocking
    /// For at most an operation timeout.
    pub fn release(self) -> Result<(), HoldError> {
        let Self { held, place } = self;
        let released = held.into_guard().map_or(Ok(()), Guard::release);
        drop(place);
        released
    }
}

impl Deref for DegradingGuard {
    type Target = Scoped<Guard>;

    fn deref(&self) -> &Scoped<Guard> {
        &self.held
    }
}
