//! A lock by its name, and how to hold it.

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::Join;
use lock_core::{
    AcquireError, BackendError, Invalid, LockName, LockOptions, Note, Patience, Refusal, Terms, WhileHeldError,
};
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
    name: Result<LockName, Invalid>,
    options: Result<LockOptions, Invalid>,
}

impl Mutex {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { shared, name: name.parse(), options: Ok(LockOptions::default()) }
    }

    /// Takes all options at once, for instance from a configuration.
    pub fn options(mut self, options: LockOptions) -> Self {
        self.options = Ok(options);
        self
    }

    /// How long the store keeps the lease when nobody renews it: 100 ms to 365 days, 30 s if not set.
    ///
    /// Renewal goes on whatever it is. A holder that dies is in the way for so long.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.set(|options| options.set_ttl(ttl))
    }

    /// How long [`acquire`](Self::acquire) waits; for as long as it takes if not set.
    pub fn wait(self, wait: Duration) -> Self {
        self.set(|options| {
            options.wait = Some(wait);
            Ok(())
        })
    }

    /// Why the lock is held, for people who look: at most 200 bytes.
    pub fn why(self, why: impl Into<String>) -> Self {
        self.set(|options| {
            options.why = why.into();
            Ok(())
        })
    }

    /// How long the lock is held at most, renewals included; then the guard is lost. No limit if not set.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.set(|options| {
            options.max_hold = Some(max_hold);
            Ok(())
        })
    }

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
        let (name, options) = self.checked()?;
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
        let (name, options) = self.checked()?;
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
        let cell = self.shared.find(self.name.as_ref().ok()?)?;
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
        let join =
            Join { turn: id, owner, terms: Terms::exclusive(options.ttl), patience, max_hold: options.max_hold, note };
        let turn = Turn::new(Arc::clone(&self.shared), Arc::clone(cell), id);
        cell.join(Seat { verdict: Some(sender), ended: None, hold: None }, join);
        Ok((turn, verdict))
    }

    fn checked(&self) -> Result<(LockName, LockOptions), Invalid> {
        let options = self.options.clone()?;
        options.validate()?;
        Ok((self.name.clone()?, options))
    }

    fn set(mut self, change: impl FnOnce(&mut LockOptions) -> Result<(), Invalid>) -> Self {
        self.options = self.options.and_then(|mut options| change(&mut options).map(|()| options));
        self
    }
}

fn no_randomness(error: std::io::Error) -> AcquireError {
    use lock_core::{BackendError, Effect, ErrorKind, Operation};
    BackendError::new("host", Operation::Acquire, ErrorKind::Unavailable, Effect::None, "the random source failed")
        .with_source(error)
        .into()
}
