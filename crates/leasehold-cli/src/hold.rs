//! A lock of any kind, and the hold of it.

use std::fmt;

use leasehold::blocking::{Guard, NamedLock, Run};
use leasehold::kit::{JobError, RunEnd, Slot, SlotAfter};
use lock_core::{AcquireError, BackendError, FencingToken, Moment};
use lock_host::{Clock, HoldError, HostClock, Proof};

use crate::wish::{Patience, Wish};

/// A lock of any kind.
pub(crate) trait Lock {
    /// Acquires it; `None` if it is busy and the wish has no patience. Blocks for as long as the wish says.
    fn take(&self, wish: &Wish) -> Result<Option<Hold>, AcquireError>;

    /// The store error that affects those who wait for it, if any.
    fn store_error(&self) -> Option<BackendError>;
}

impl<M: fmt::Debug + 'static> Lock for NamedLock<M> {
    fn take(&self, wish: &Wish) -> Result<Option<Hold>, AcquireError> {
        let lock = self.clone().options(wish.options());
        let guard = match wish.patience {
            Patience::None => lock.try_acquire()?,
            Patience::Until(_) | Patience::Endless | Patience::Always => Some(lock.acquire()?),
        };
        Ok(guard.map(|guard| Hold(Held::Lock(Box::new(guard)))))
    }

    fn store_error(&self) -> Option<BackendError> {
        Self::store_error(self)
    }
}

/// A guard of any kind.
trait AnyGuard: fmt::Debug + Send {
    fn proof(&self) -> &Proof;
    fn renew(&self) -> Result<(), HoldError>;
    fn release(self: Box<Self>) -> Result<(), HoldError>;
}

impl<M: fmt::Debug> AnyGuard for Guard<M> {
    fn proof(&self) -> &Proof {
        self
    }

    fn renew(&self) -> Result<(), HoldError> {
        Self::renew(self)
    }

    fn release(self: Box<Self>) -> Result<(), HoldError> {
        Self::release(*self)
    }
}

/// A lock that is held, alone or with others.
#[derive(Debug)]
pub(crate) struct Hold(Held);

#[derive(Debug)]
enum Held {
    /// By a command.
    Lock(Box<dyn AnyGuard>),
    /// By a run of a job.
    Job(Box<Run>),
}

/// How a command ended, as far as it matters for the job that it is a run of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is done.
    Done,
    /// It has failed, and its slot is to be run again.
    Failed,
    /// Something else ended it: a crash.
    Crashed,
    /// It has not run, or not under the lock to its end: a crash after which the lock is not kept.
    Abandoned,
}

/// How a release ended.
#[derive(Debug)]
pub(crate) enum Parted {
    /// No loss was detected until now.
    Released,
    /// It had already been lost, for this reason.
    AlreadyLost(String),
    /// Unknown, for this reason.
    Unknown(String),
}

impl From<Run> for Hold {
    fn from(run: Run) -> Self {
        Self(Held::Job(Box::new(run)))
    }
}

impl Hold {
    fn proof(&self) -> &Proof {
        match &self.0 {
            Held::Lock(guard) => guard.proof(),
            Held::Job(run) => run.guard(),
        }
    }

    /// The fencing token.
    pub(crate) fn token(&self) -> FencingToken {
        self.proof().fencing_token()
    }

    /// The slot of a semaphore; `None` of any other lock.
    pub(crate) fn slot(&self) -> Option<u32> {
        Proof::hold(self.proof()).lease().slots.get().first().copied()
    }

    /// The earlier slots of a job that nobody has run, oldest first, as far as the store answers.
    pub(crate) fn missed(&self) -> Vec<Slot> {
        match &self.0 {
            Held::Lock(_) => Vec::new(),
            Held::Job(run) => run.missed(),
        }
    }

    /// When the hold ends, unless it is renewed first.
    pub(crate) fn deadline(&self) -> Moment {
        // Read first, so that a pause between the two makes the deadline early, not late.
        let now = HostClock.now();
        now + self.proof().remaining()
    }

    /// Renews the lease now, if the store accepts it.
    pub(crate) fn renew(&self) {
        // A loss shows in `lost`, and after any other failure the regular renewals continue.
        let _ = match &self.0 {
            Held::Lock(guard) => guard.renew(),
            Held::Job(run) => run.guard().renew(),
        };
    }

    /// Why the hold was lost, if it was.
    pub(crate) fn lost(&self) -> Option<String> {
        self.proof().check().err().map(|lost| lost.reason.to_string())
    }

    /// Releases the lock at the end of a command. Says what the store knows about the slot of a job.
    pub(crate) fn end(self, end: End) -> (Parted, SlotAfter) {
        let run = match (self.0, end) {
            (Held::Lock(guard), _) => return (guard.release().into(), SlotAfter::None),
            (Held::Job(run), End::Done) => run.done(),
            (Held::Job(run), End::Failed) => run.failed(),
            (Held::Job(run), End::Crashed) => return (run.release().into(), SlotAfter::None),
            (Held::Job(run), End::Abandoned) => {
                // The store keeps locks, or the run would not have begun.
                _ = run.guard().keep_at_least(std::time::Duration::ZERO);
                return (run.release().into(), SlotAfter::None);
            }
        };
        match run {
            Ok(RunEnd { slot, unconfirmed: None, .. }) => (Parted::Released, slot),
            Ok(RunEnd { slot, unconfirmed: Some(error), .. }) => (Parted::Unknown(error.to_string()), slot),
            Err(JobError::Lost(lost)) => (Parted::AlreadyLost(lost.reason.to_string()), SlotAfter::None),
            Err(error) => (Parted::Unknown(error.to_string()), SlotAfter::Unknown),
        }
    }
}

impl From<Result<(), HoldError>> for Parted {
    fn from(released: Result<(), HoldError>) -> Self {
        match released {
            Ok(()) => Self::Released,
            Err(HoldError::Lost(lost)) => Self::AlreadyLost(lost.reason.to_string()),
            Err(error) => Self::Unknown(error.to_string()),
        }
    }
}
