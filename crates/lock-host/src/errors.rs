//! The errors of holds and of work under a lock, and those that a client makes itself.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_core::{AcquireError, BackendError, Busy, Effect, ErrorKind, Invalid, Lost, Operation, TryAcquireError};

/// Why a hold was not released, verified or renewed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// The lock had already been lost: part of the work may have been done without it.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The store did not confirm it, and no loss was detected until then. A release is repeated in the background until the lease ends,
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

/// Why work under a lock was not completed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhileHeldError {
    /// The lock was not acquired, and the work was not started; or the hold could not be changed, and the work may have begun.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lock was lost; the work was stopped, or its result came too late to count.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The store did not confirm a release, a verification or a renewal that the work asked for itself. A release at the end of
    /// `run_while_held` that is not confirmed is not an error.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl From<HoldError> for WhileHeldError {
    fn from(error: HoldError) -> Self {
        error.into_loss().map_or_else(Self::Backend, Self::Lost)
    }
}

impl From<TryAcquireError> for WhileHeldError {
    fn from(error: TryAcquireError) -> Self {
        Self::Acquire(error.into())
    }
}

/// Drops the guard that the error holds, which releases the lock.
impl<G> From<ChangeError<G>> for WhileHeldError {
    fn from(error: ChangeError<G>) -> Self {
        let reason = error.reason().clone();
        match reason {
            Unchanged::Busy(busy) => TryAcquireError::from(busy).into(),
            Unchanged::Shared => AcquireError::from(shared()).into(),
            Unchanged::Lost(lost) => Self::Lost(lost),
            Unchanged::Refused(error) => Self::Acquire(error),
        }
    }
}

/// A hold could not be changed, and continues as before. Contains the guard and the reason.
///
/// The lock stays held as long as this error lives. After a `?`, the guard is in the error of the caller; the lock is released
/// when that is dropped.
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

/// What prevents a guard from being detached beside others of its lease.
fn shared() -> Invalid {
    let problem = "other readers of this client hold under the same lease";
    Invalid::new("guard to detach", "of a reader", problem, "detach the last of them")
}

fn others(Busy { name, holder }: &Busy) -> String {
    let holder = holder.as_ref().map_or_else(|| "somebody".to_owned(), ToString::to_string);
    format!("the lock \"{name}\" is held by {holder} as well")
}

/// The answer of a backend that panicked: its effect is unknown.
pub fn panicked(operation: Operation) -> BackendError {
    BackendError::new("client", operation, ErrorKind::Protocol, Effect::Unknown, "the backend panicked")
}

/// The outcome of a claim that was sent over a connection which ended before the answer came.
pub fn unanswered() -> BackendError {
    let message = "the runtime ended before the answer came";
    BackendError::new("client", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
}

/// Calls a backend. If it panics, the outcome is unknown.
///
/// # Errors
/// Those of the backend, or [`panicked`].
pub fn caught<T>(operation: Operation, ask: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| Err(panicked(operation)))
}

/// The outcome of work under a lock. The work counts if no loss was detected until the release, even if the store did not
/// confirm the release.
///
/// # Errors
/// `Lost`, if either of the two says so.
pub fn counted<T>(done: Result<T, Lost>, released: Result<(), HoldError>) -> Result<T, WhileHeldError> {
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
        let lost = Lost { name, token, reason: lock_core::LossReason::NotHeld };
        let busy = Busy { name: "a".parse().unwrap(), holder: None };
        let silent = panicked(Operation::Release);
        let refused = |reason: Unchanged| WhileHeldError::from(ChangeError::new((), reason));
        assert_eq!(WhileHeldError::from(HoldError::from(lost.clone())), WhileHeldError::Lost(lost.clone()));
        assert_eq!(WhileHeldError::from(HoldError::from(silent.clone())), WhileHeldError::Backend(silent));
        assert_eq!(refused(lost.clone().into()), WhileHeldError::Lost(lost));
        assert!(matches!(refused(busy.into()), WhileHeldError::Acquire(AcquireError::TimedOut { .. })));
        assert!(matches!(refused(Unchanged::Shared), WhileHeldError::Acquire(AcquireError::Invalid(_))));
        assert_eq!(refused(AcquireError::Closed.into()), WhileHeldError::Acquire(AcquireError::Closed));
    }

    #[test]
    fn a_change_that_others_prevent_says_what_was_not_done_and_who_prevents_it() {
        let busy = Busy { name: "a".parse().unwrap(), holder: None };
        let error = ChangeError::new((), busy.into());
        assert_eq!(error.to_string(), "the hold was not changed: the lock \"a\" is held by somebody as well");
    }
}
