//! A lock by its name, and how to hold it.

use lock_core::{AcquireError, BackendError, Refusal, WhileHeldError};
use lock_host::{Asking, Held, Lock};

use crate::driver::{Driver, verdict};
use crate::guard::Guard;
use crate::threads::Threads;

/// A lock by its name, and how to hold it. Made by [`Client::mutex`](crate::Client::mutex).
///
/// Nothing is asked of the store before [`acquire`](Self::acquire) or one of its kin. An input that is not valid is
/// told there. Can be acquired again and again.
#[derive(Clone, Debug)]
#[must_use = "a mutex does nothing until it is acquired"]
pub struct Mutex(pub(crate) Lock<Driver>);

impl Mutex {
    lock_host::option_setters!();

    /// Waits for the lock.
    ///
    /// # Errors
    /// `Invalid` for a name or an option that is not valid; `TimedOut` after the wait that was set; `Forgotten` where
    /// the store lost its memory; `Backend` for errors that do not pass, or did not pass within the wait; `Closed`.
    ///
    /// # Blocking
    /// For as long as was set by [`wait`](Self::wait), and at most two operation timeouts more: one for a request that is
    /// under way then, one for clearing what the wait left at the store.
    pub fn acquire(&self) -> Result<Guard, AcquireError> {
        let asking = self.0.ask()?;
        asking.waited(take_turn(&asking)).map(Guard)
    }

    /// Takes the lock if it is free; `None` if it is held.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), but for `TimedOut`: being busy is an answer.
    ///
    /// # Blocking
    /// For an operation timeout or two.
    pub fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let asking = self.0.ask()?.at_once();
        Ok(asking.tried(take_turn(&asking))?.map(Guard))
    }

    /// Why those who wait for this lock in this client go on waiting though the store fails: the error of the latest
    /// request. `None` while the store answers, and where nobody waits.
    ///
    /// A wait outlasts errors that may pass, and some of them pass only when somebody does something about them: a full
    /// disk, a primary that became a replica. Ask now and then while waiting, and show it.
    pub fn store_error(&self) -> Option<BackendError> {
        self.0.trouble()
    }

    /// Waits for the lock, works while it is held, and releases it.
    ///
    /// A thread cannot be stopped from outside: work that takes long should call [`Guard::check`](lock_host::Proof::check) between its steps.
    ///
    /// # Errors
    /// `Acquire` if the lock was not acquired; `Lost` if it was lost before the work was done, whose result is dropped.
    ///
    /// # Blocking
    /// As [`acquire`](Self::acquire), then for as long as the work takes, then for an operation timeout.
    pub fn run_while_held<T>(&self, work: impl FnOnce(&Guard) -> T) -> Result<T, WhileHeldError> {
        let guard = self.acquire()?;
        let done = work(&guard);
        let held = guard.check();
        // The work is done under the lock; a release that fails is repeated in the background.
        _ = guard.release();
        Ok(held.map(|()| done)?)
    }
}

/// Waits for a turn that a guard of any kind can be made of.
fn take_turn(asking: &Asking<Driver>) -> Result<Held<Driver>, Refusal> {
    loop {
        let (turn, ()) = asking.join(Threads::begin)?;
        let hold = verdict(turn.site(), turn.id())?;
        if let Some(held) = asking.held(turn, hold) {
            return Ok(held);
        }
    }
}
