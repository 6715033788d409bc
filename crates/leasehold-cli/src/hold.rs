//! A lock of any kind that is held, by a command or by a run of a job.

use std::time::Duration;

use leasehold::blocking::{AnyGuard, Run};
use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::guard::Proof;
use leasehold::kit::{JobError, RunEnd, Slot, SlotAfter};
use leasehold::{Error, FencingToken};

/// The lease that a command runs under.
pub(crate) trait Lease {
    /// When the hold ends, unless it is renewed first.
    fn deadline(&self) -> Moment;
    /// Why the hold was lost, if it was.
    fn lost(&self) -> Option<String>;
    /// Renews the lease now, if the store accepts it.
    fn renew(&self);
}

/// A lock that is held, alone or with others.
#[derive(Debug)]
pub(crate) enum Hold {
    /// By a command.
    Lock(AnyGuard),
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

impl Hold {
    fn proof(&self) -> &Proof {
        match self {
            Self::Lock(guard) => guard,
            Self::Job(run) => run.guard(),
        }
    }

    /// The fencing token.
    pub(crate) fn token(&self) -> FencingToken {
        self.proof().fencing_token()
    }

    /// The slot of a semaphore; `None` of any other lock.
    pub(crate) fn slot(&self) -> Option<u32> {
        match self {
            Self::Lock(guard) => guard.slots().first().copied(),
            Self::Job(_) => None,
        }
    }

    /// The earlier slots of a job that nobody has run, oldest first, as far as the store answers.
    pub(crate) fn missed(&self) -> Vec<Slot> {
        match self {
            Self::Lock(_) => Vec::new(),
            Self::Job(run) => run.missed(),
        }
    }

    /// Releases the lock at the end of a command. Says what the store knows about the slot of a job.
    pub(crate) fn end(self, end: End) -> (Result<(), Error>, SlotAfter) {
        let ended = match (self, end) {
            (Self::Lock(guard), _) => return (guard.release().map_err(Error::from), SlotAfter::None),
            (Self::Job(run), End::Done) => run.done(),
            (Self::Job(run), End::Failed) => run.failed(),
            (Self::Job(run), End::Crashed | End::Abandoned) => {
                if end == End::Abandoned {
                    // The store keeps locks, or the run would not have begun.
                    _ = run.guard().keep_at_least(Duration::ZERO);
                }
                return (run.release().map_err(Error::from), SlotAfter::None);
            }
        };
        match ended {
            Ok(RunEnd { slot, unconfirmed, .. }) => (unconfirmed.map_or(Ok(()), |error| Err(error.into())), slot),
            Err(JobError::Lost(lost)) => (Err(lost.into()), SlotAfter::None),
            Err(error) => (Err(error.into()), SlotAfter::Unknown),
        }
    }
}

impl Lease for Hold {
    fn deadline(&self) -> Moment {
        // Read first, so that a pause between the two makes the deadline early, not late.
        let now = HostClock.now();
        now + self.proof().remaining()
    }

    fn lost(&self) -> Option<String> {
        self.proof().check().err().map(|lost| lost.reason.to_string())
    }

    fn renew(&self) {
        // A loss shows in `lost`, and after any other failure the regular renewals continue.
        let _ = match self {
            Self::Lock(guard) => guard.renew(),
            Self::Job(run) => run.guard().renew(),
        };
    }
}
