//! A lock of any kind, and the hold of it.

use std::fmt;
use std::time::Duration;

use leasehold::blocking::{Guard, Mutex, NamedLock};
use lock_core::{AcquireError, BackendError, Fairness, FencingToken, Moment, OnUnavailable};
use lock_host::{Clock, HostClock, LongWaits, Proof, ReleaseError, VerifyError};

use crate::exit::Failure;
use crate::job::{Marked, Marking};
use crate::wish::{Patience, Wish};

/// A lock of any kind.
pub(crate) trait Lock {
    /// Acquires it; `None` if it is busy and the wish has no patience. Blocks for as long as the wish says.
    fn take(&self, wish: &Wish) -> Result<Option<Hold>, AcquireError>;

    /// The store error that affects those who wait for it, if any.
    fn store_error(&self) -> Option<BackendError>;
}

/// Acquires a lock as the wish says.
fn acquired<M>(lock: NamedLock<M>, wish: &Wish) -> Result<Option<Guard<M>>, AcquireError> {
    // A wait for a store that is away ends with the wait that was set, like any other.
    let lock = lock.ttl(wish.ttl.get()).why(wish.job.why(&wish.why)).on_unavailable(OnUnavailable::Wait);
    let lock = wish.job.at_most.into_iter().fold(lock, NamedLock::max_hold);
    let lock = match wish.fairness {
        Fairness::Fair => lock.fair(),
        Fairness::Barging => lock.barging(),
    };
    let lock = match wish.long_waits {
        LongWaits::Reported => lock,
        LongWaits::Expected => lock.standing_by(),
    };
    Ok(match wish.patience {
        Patience::None => lock.try_acquire()?,
        Patience::Until(limit) => Some(lock.wait(limit).acquire()?),
        Patience::Endless | Patience::Always => Some(lock.acquire()?),
    })
}

impl<M: fmt::Debug + 'static> Lock for NamedLock<M> {
    fn take(&self, wish: &Wish) -> Result<Option<Hold>, AcquireError> {
        Ok(acquired(self.clone(), wish)?.map(Hold::new))
    }

    fn store_error(&self) -> Option<BackendError> {
        Self::store_error(self)
    }
}

/// A lock that nobody gets for some time after a run has begun.
pub(crate) struct KeptLock {
    mutex: Mutex,
    at_least: Duration,
}

impl KeptLock {
    pub(crate) fn new(mutex: Mutex, at_least: Duration) -> Self {
        Self { mutex, at_least }
    }
}

impl Lock for KeptLock {
    fn take(&self, wish: &Wish) -> Result<Option<Hold>, AcquireError> {
        let guard = acquired(self.mutex.clone(), wish)?;
        Ok(guard.map(|guard| Hold::new(KeptGuard { guard, kept_until: HostClock.now() + self.at_least })))
    }

    fn store_error(&self) -> Option<BackendError> {
        self.mutex.store_error()
    }
}

/// Its guard.
#[derive(Debug)]
struct KeptGuard {
    guard: Guard,
    kept_until: Moment,
}

impl AnyGuard for KeptGuard {
    fn proof(&self) -> &Proof {
        &self.guard
    }

    fn renew(&self) -> Result<(), VerifyError> {
        self.guard.renew()
    }

    fn release(self: Box<Self>) -> Result<(), ReleaseError> {
        match self.kept_until.since(HostClock.now()) {
            Duration::ZERO => self.guard.release(),
            left => self.guard.release_keeping(left),
        }
    }

    fn abandon(&mut self) {
        self.kept_until = Moment::ORIGIN;
    }
}

/// A guard of any kind.
trait AnyGuard: fmt::Debug + Send {
    fn proof(&self) -> &Proof;
    fn renew(&self) -> Result<(), VerifyError>;
    fn release(self: Box<Self>) -> Result<(), ReleaseError>;

    /// The release is to keep nothing.
    fn abandon(&mut self) {}
}

impl<M: fmt::Debug> AnyGuard for Guard<M> {
    fn proof(&self) -> &Proof {
        self
    }

    fn renew(&self) -> Result<(), VerifyError> {
        Self::renew(self)
    }

    fn release(self: Box<Self>) -> Result<(), ReleaseError> {
        Self::release(*self)
    }
}

/// A lock that is held, alone or with others.
#[derive(Debug)]
pub(crate) struct Hold {
    guard: Box<dyn AnyGuard>,
    marking: Option<Marking>,
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

impl Hold {
    fn new(guard: impl AnyGuard + 'static) -> Self {
        Self { guard: Box::new(guard), marking: None }
    }

    /// The same, for a run that marks a slot.
    pub(crate) fn with_mark(self, marking: Option<Marking>) -> Self {
        Self { marking, ..self }
    }

    /// The command is about to begin.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        self.marking = self.marking.take().map(Marking::before).transpose()?;
        Ok(())
    }

    /// The slot has not run, unless it is marked already.
    pub(crate) fn unmark(&mut self) {
        self.marking = None;
    }

    /// The command has not run, or not under the lock to its end: nothing is kept.
    pub(crate) fn abandon(&mut self) {
        self.unmark();
        self.guard.abandon();
    }

    /// The command has failed, and the slot is to be run again. Gives the mark that it may still have.
    pub(crate) fn fail(&mut self) -> Option<Marked> {
        self.guard.abandon();
        match self.marking.take() {
            Some(Marking::Kept(marked)) => Some(marked),
            // Dropped, and so released.
            Some(Marking::Held(_)) | None => None,
        }
    }

    /// Marks the slot of a run that has ended, if that was left for the end.
    pub(crate) fn mark(&mut self) -> Result<(), Failure> {
        self.marking.take().map_or(Ok(()), Marking::keep)
    }

    /// The fencing token.
    pub(crate) fn token(&self) -> FencingToken {
        self.guard.proof().fencing_token()
    }

    /// The slot of a semaphore; `None` of any other lock.
    pub(crate) fn slot(&self) -> Option<u32> {
        Proof::hold(self.guard.proof()).lease().slots.get().first().copied()
    }

    /// When the hold ends, unless it is renewed first.
    pub(crate) fn deadline(&self) -> Moment {
        // Read first, so that a pause between the two makes the deadline early, not late.
        let now = HostClock.now();
        now + self.guard.proof().remaining()
    }

    /// Renews the lease now, if the store accepts it.
    pub(crate) fn renew(&self) {
        // A loss shows in `lost`, and after any other failure the regular renewals continue.
        let _ = self.guard.renew();
    }

    /// Why the hold was lost, if it was.
    pub(crate) fn lost(&self) -> Option<String> {
        self.guard.proof().check().err().map(|lost| lost.reason.to_string())
    }

    /// Releases the lock.
    pub(crate) fn release(self) -> Parted {
        match self.guard.release() {
            Ok(()) => Parted::Released,
            Err(ReleaseError::Lost(lost)) => Parted::AlreadyLost(lost.reason.to_string()),
            Err(error) => Parted::Unknown(error.to_string()),
        }
    }
}
