//! A lock by its name, and how to hold it.

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::Join;
use lock_core::{AcquireError, BackendError, LockName, LockOptions, Note, Patience, Refusal, WhileHeldError};
use lock_host::{Spec, no_randomness};
use tokio::sync::oneshot;

use crate::Guard;
use crate::cell::{Cell, Seat, Verdict};
use crate::client::Shared;
use crate::guard::Turn;

/// A lock by its name, and how to hold it. Made by [`Client::mutex`](crate::Client::mutex).
///
/// Nothing is asked of the store before [`acquire`](Self::acquire) or one of its kin. An input that is not valid is
/// told there. Can be acquired again and again.
#[derive(Clone, Debug)]
#[must_use = "a mutex does nothing until it is acquired"]
pub struct Mutex {
    shared: Arc<Shared>,
    spec: Spec,
}

impl Mutex {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { shared, spec: Spec::new(name) }
    }

    lock_host::option_setters!();

    /// Waits for the lock.
    ///
    /// # Errors
    /// `Invalid` for a name or an option that is not valid; `TimedOut` after the wait that was set; `Forgotten` where
    /// the store lost its memory; `Backend` for errors that do not pass, or did not pass within the wait; `Closed`.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line. What it left at the store is released in the background, at once if the
    /// store answers.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let (name, options) = self.spec.checked()?;
        let start = self.shared.ports.clock.now();
        match self.take_turn(&name, &options, options.patience(start)).await? {
            Ok(guard) => Ok(guard),
            Err(Refusal::Busy { holder }) => Err(AcquireError::TimedOut { name, waited: Duration::ZERO, holder }),
            Err(Refusal::Error(error)) => Err(error),
        }
    }

    /// Takes the lock if it is free; `None` if it is held.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), but for `TimedOut`: being busy is an answer.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let (name, options) = self.spec.checked()?;
        match self.take_turn(&name, &options, Patience::Never).await? {
            Ok(guard) => Ok(Some(guard)),
            Err(Refusal::Busy { .. }) => Ok(None),
            Err(Refusal::Error(error)) => Err(error),
        }
    }

    /// Why those who wait for this lock in this client go on waiting though the store fails: the error of the latest
    /// request. `None` while the store answers, and where nobody waits.
    ///
    /// A wait outlasts errors that may pass, and some of them pass only when somebody does something about them: a full
    /// disk, a primary that became a replica. Ask now and then while waiting, and show it.
    pub fn store_error(&self) -> Option<BackendError> {
        let cell = self.shared.find(self.spec.name()?)?;
        cell.trouble()
    }

    /// Waits for the lock, works while it is held, and releases it.
    ///
    /// The work is stopped (dropped at its next await point) when the lock is lost.
    ///
    /// # Errors
    /// `Acquire` if the lock was not acquired; `Lost` if it was lost before the work was done.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases the lock in the background.
    pub async fn run_while_held<T>(&self, work: impl AsyncFnOnce(&Guard) -> T) -> Result<T, WhileHeldError> {
        let guard = self.acquire().await?;
        let done = tokio::select! {
            biased;
            lost = guard.lost() => Err(lost),
            done = work(&guard) => guard.check().map(|()| done),
        };
        // The work is done under the lock; a release that fails is repeated in the background.
        _ = guard.release().await;
        Ok(done?)
    }

    async fn take_turn(
        &self,
        name: &LockName,
        options: &LockOptions,
        patience: Patience,
    ) -> Result<Result<Guard, Refusal>, AcquireError> {
        let note = lock_host::note(&options.why)?;
        let cell = self.shared.cell(name).map_err(no_randomness)?;
        loop {
            let (turn, verdict) = self.join(&cell, options, patience, note.clone())?;
            // The sender lives in the cell until it has spoken.
            let Ok(verdict) = verdict.await else { return Err(AcquireError::Closed) };
            match verdict {
                Ok(hold) if hold.check(self.shared.ports.clock.now()).is_ok() => return Ok(Ok(Guard::new(turn, hold))),
                // The task was away for so long that the hold is over; it was lost, and the line is joined again.
                Ok(_) => {}
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
    }

    fn join(
        &self,
        cell: &Arc<Cell>,
        options: &LockOptions,
        patience: Patience,
        note: Note,
    ) -> Result<(Turn, oneshot::Receiver<Verdict>), AcquireError> {
        let id = self.shared.next_turn();
        let owner = self.shared.owners.draw(&id).map_err(no_randomness)?;
        let (sender, verdict) = oneshot::channel();
        let join = Join { turn: id, owner, ttl: options.ttl, patience, max_hold: options.max_hold, note };
        let turn = Turn::new(Arc::clone(&self.shared), Arc::clone(cell), id);
        cell.join(Seat { verdict: Some(sender), ended: None, hold: None }, join);
        Ok((turn, verdict))
    }
}
