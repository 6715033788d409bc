//! The errors of holds and of work under a lock, and those that a client makes itself.

use std::io;

use lock_core::latch::LatchError;
use lock_core::limit::LimitError;
use lock_core::{
    AcquireError, BackendError, Busy, Effect, ErrorKind, Invalid, LossReason, Lost, Operation, TryAcquireError,
};

/// Why a hold was not released, verified or renewed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// The lock had already been lost: part of the work may have been done without it.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The store did not confirm the request, and no loss was detected until then. A release is repeated in the background until the lease ends,
    /// and renewals continue.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl HoldError {
    /// The loss, if it is one.
    #[doc(hidden)]
    pub fn into_loss(self) -> Result<Lost, BackendError> {
        match self {
            Self::Lost(lost) => Ok(lost),
            Self::Backend(error) => Err(error),
        }
    }
}

/// Why work with locks failed. The errors of locks, guards, limits, latches and the kit convert to this one, and so does that of connecting:
/// a function that returns it can use `?` on all of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A lock was not acquired, or a limit was not read or set; or a name, an option or a URL is invalid; or the client was closed.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// A hold was not changed. Its guard has been dropped with the error that had it.
    #[error("the hold was not changed: {0}")]
    Unchanged(Unchanged),
    /// A lock was lost: the work was not begun, was stopped, or its result came too late to count.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A request about a latch, or a wait for one, failed.
    #[error(transparent)]
    Latch(#[from] LatchError),
    /// The store could not be opened, or did not confirm a release, a verification, a renewal or an inspection. The release at the end of
    /// `run_while_held` is not an error if it is not confirmed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl Error {
    /// The error of the store in it, wherever it came up.
    pub fn backend(&self) -> Option<&BackendError> {
        match self {
            Self::Backend(error)
            | Self::Acquire(AcquireError::Backend(error))
            | Self::Unchanged(Unchanged::Refused(AcquireError::Backend(error)))
            | Self::Latch(LatchError::Backend(error)) => Some(error),
            Self::Lost(Lost { reason: LossReason::Expired(error), .. }) => error.as_ref(),
            Self::Acquire(_) | Self::Unchanged(_) | Self::Lost(_) | Self::Latch(_) => None,
        }
    }
}

impl From<Invalid> for Error {
    fn from(error: Invalid) -> Self {
        Self::Acquire(error.into())
    }
}

impl From<LimitError> for Error {
    fn from(error: LimitError) -> Self {
        Self::Acquire(error.into())
    }
}

impl From<HoldError> for Error {
    fn from(error: HoldError) -> Self {
        error.into_loss().map_or_else(Self::Backend, Self::Lost)
    }
}

impl<E: Into<Self>> From<TryAcquireError<E>> for Error {
    fn from(error: TryAcquireError<E>) -> Self {
        match error {
            TryAcquireError::Busy(busy) => Self::Acquire(TryAcquireError::from(busy).into()),
            TryAcquireError::Failed(error) => error.into(),
        }
    }
}

/// Drops the guard in it, which releases the lock.
impl<G> From<ChangeError<G>> for Error {
    fn from(error: ChangeError<G>) -> Self {
        match error.reason().clone() {
            Unchanged::Lost(lost) => Self::Lost(lost),
            reason @ (Unchanged::Busy(_) | Unchanged::Shared | Unchanged::Refused(_)) => Self::Unchanged(reason),
        }
    }
}

/// A hold could not be changed, and continues as before unless it was lost. Contains the guard and the reason.
///
/// The lock stays held as long as this error lives, also inside the caller's own error. Its conversion to [`Error`] drops the guard, which
/// releases the lock.
#[derive(Debug, thiserror::Error)]
#[error("the hold was not changed: {}", self.reason())]
pub struct ChangeError<G>(Box<(G, Unchanged)>);

impl<G> ChangeError<G> {
    #[doc(hidden)]
    pub fn new(guard: G, reason: Unchanged) -> Self {
        Self(Box::new((guard, reason)))
    }

    /// Why nothing changed.
    pub fn reason(&self) -> &Unchanged {
        &self.0.1
    }

    /// The guard as it was.
    pub fn guard(&self) -> &G {
        &self.0.0
    }

    /// Takes the guard, which still holds unless the hold was lost.
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn into_guard(self) -> G {
        self.0.0
    }

    #[doc(hidden)]
    pub fn map<H>(self, change: impl FnOnce(G) -> H) -> ChangeError<H> {
        let (guard, reason) = *self.0;
        ChangeError::new(change(guard), reason)
    }
}

/// Why a hold was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unchanged {
    /// Others hold the lock as well: other readers, of which one is named.
    #[error("{}", others(.0))]
    Busy(#[from] Busy),
    /// Other guards of this client read under the same lease, which cannot be detached from them.
    #[error("other readers of this client hold under the same lease; detach the last of them")]
    Shared,
    /// The lock is no longer held.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The change is invalid, or the store refused it or cannot do it.
    #[error(transparent)]
    Refused(#[from] AcquireError),
}

fn others(Busy { name, holder }: &Busy) -> String {
    let holder = holder.as_ref().map_or_else(|| "somebody".to_owned(), ToString::to_string);
    format!("the lock \"{name}\" is held by {holder} as well")
}

/// The answer of a backend that panicked: its effect is unknown.
pub fn panicked(operation: Operation) -> BackendError {
    BackendError::new("client", operation, ErrorKind::Protocol, Effect::Unknown, "the backend panicked")
}

/// The outcome of work under a lock. The work counts if no loss was detected until the release, even if the store did not
/// confirm the release.
///
/// # Errors
/// `Lost`, if either of the two says so.
pub fn counted<T>(done: Result<T, Lost>, released: Result<(), HoldError>) -> Result<T, Error> {
    match released {
        Err(HoldError::Lost(lost)) => Err(lost.into()),
        Ok(()) | Err(_) => Ok(done?),
    }
}

/// The system's random source failed, so no request was sent.
pub(crate) fn no_randomness(error: io::Error) -> BackendError {
    BackendError::new("host", Operation::Acquire, ErrorKind::Unavailable, Effect::None, "the random source failed")
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code that acquires, works and releases by itself returns one error.
    #[test]
    fn every_error_of_a_hold_is_one_of_work_under_it() {
        let (name, token) = ("a".parse().unwrap(), lock_core::FencingToken::new(7).unwrap());
        let lost = Lost { name, token, reason: LossReason::NotHeld };
        let busy = Busy { name: "a".parse().unwrap(), holder: None };
        let silent = panicked(Operation::Release);
        let refused = |reason: Unchanged| Error::from(ChangeError::new((), reason));
        assert_eq!(Error::from(HoldError::from(lost.clone())), Error::Lost(lost.clone()));
        assert_eq!(Error::from(HoldError::from(silent.clone())), Error::Backend(silent));
        assert_eq!(refused(lost.clone().into()), Error::Lost(lost));
        assert_eq!(refused(busy.clone().into()).to_string(), ChangeError::new((), busy.clone().into()).to_string());
        assert_eq!(refused(AcquireError::Closed.into()), Error::Unchanged(AcquireError::Closed.into()));
        let tried = Error::from(TryAcquireError::<AcquireError>::Busy(busy));
        assert!(matches!(tried, Error::Acquire(AcquireError::TimedOut { .. })));
    }

    #[test]
    fn the_error_of_the_store_is_found_wherever_it_is() {
        let (name, token) = ("a".parse().unwrap(), lock_core::FencingToken::new(7).unwrap());
        let silent = panicked(Operation::Renew);
        let lost = Lost { name, token, reason: LossReason::Expired(Some(silent.clone())) };
        let acquire = AcquireError::from(silent.clone());
        let unchanged = Error::from(ChangeError::new((), acquire.clone().into()));
        let latch = LatchError::from(silent.clone());
        for error in [silent.clone().into(), acquire.into(), unchanged, lost.into(), latch.into()] {
            assert_eq!(error.backend(), Some(&silent));
        }
        assert_eq!(Error::from(AcquireError::Closed).backend(), None);
    }

    #[test]
    fn a_change_that_others_prevent_says_what_was_not_done_and_who_prevents_it() {
        let busy = Busy { name: "a".parse().unwrap(), holder: None };
        let error = ChangeError::new((), busy.into());
        assert_eq!(error.to_string(), "the hold was not changed: the lock \"a\" is held by somebody as well");
    }
}
