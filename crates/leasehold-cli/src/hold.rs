//! A lock of any kind, and the hold of it.

use std::fmt;

use leasehold::blocking::{Guard, NamedLock};
use lock_core::{AcquireError, BackendError, FencingToken, Moment};
use lock_host::{Clock, HostClock, Proof, ReleaseError, VerifyError};

use crate::locks::{Patience, Wish};

/// A lock of any kind.
pub(crate) trait Lock {
    /// Acquires it; `None` if it is busy and the wish has no patience. Blocks for as long as the wish says.
    fn take(&self, wish: &Wish) -> Result<Option<Hold>, AcquireError>;

    /// The store error that affects those who wait for it, if any.
    fn store_error(&self) -> Option<BackendError>;
}

impl<M: fmt::Debug + 'static> Lock for NamedLock<M> {
    fn take(&self, wish: &Wish) -> Result<Option<Hold>, AcquireError> {
        let lock = self.clone().ttl(wish.ttl.get()).why(wish.why.as_str());
        let guard = match wish.patience {
            Patience::None => lock.try_acquire()?,
            Patience::Until(limit) => Some(lock.wait(limit).acquire()?),
            Patience::Endless => Some(lock.acquire()?),
        };
        Ok(guard.map(|guard| Hold(Box::new(guard))))
    }

    fn store_error(&self) -> Option<BackendError> {
        Self::store_error(self)
    }
}

/// A guard of any kind.
trait AnyGuard: fmt::Debug + Send {
    fn proof(&self) -> &Proof;
    fn renew(&self) -> Result<(), VerifyError>;
    fn release(self: Box<Self>) -> Result<(), ReleaseError>;
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
pub(crate) struct Hold(Box<dyn AnyGuard>);

/// How a release ended.
#[derive(Debug)]
pub(crate) enum Parted {
    /// The lock was held until now.
    Released,
    /// It had already been lost, for this reason.
    AlreadyLost(String),
    /// Unknown, for this reason.
    Unknown(String),
}

impl Hold {
    /// The fencing token.
    pub(crate) fn token(&self) -> FencingToken {
        self.0.proof().fencing_token()
    }

    /// The slot of a semaphore; `None` of any other lock.
    pub(crate) fn slot(&self) -> Option<u32> {
        Proof::hold(self.0.proof()).lease().slots.get().first().copied()
    }

    /// When the hold ends, unless it is renewed first.
    pub(crate) fn deadline(&self) -> Moment {
        // Read first, so that a pause between the two makes the deadline early, not late.
        let now = HostClock.now();
        now + self.0.proof().remaining()
    }

    /// Renews the lease now, if the store accepts it.
    pub(crate) fn renew(&self) {
        // A loss shows in `lost`, and after any other failure the regular renewals continue.
        let _ = self.0.renew();
    }

    /// Why the hold was lost, if it was.
    pub(crate) fn lost(&self) -> Option<String> {
        self.0.proof().check().err().map(|lost| lost.reason.to_string())
    }

    /// Releases the lock.
    pub(crate) fn release(self) -> Parted {
        match self.0.release() {
            Ok(()) => Parted::Released,
            Err(ReleaseError::Lost(lost)) => Parted::AlreadyLost(lost.reason.to_string()),
            Err(error) => Parted::Unknown(error.to_string()),
        }
    }
}
