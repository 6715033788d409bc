//! Why locks of the kit were not acquired, or not released.

use std::fmt;

use lock_core::{AcquireError, BackendError, FencingToken, Invalid, LockName, Lost, TryAcquireError};
use lock_host::{HoldError, WhileHeldError};

/// Why a set of locks was not acquired. None of them is held: those that were acquired have been released, or are being
/// released in the background.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireAllError {
    /// The set, a name or an option is invalid; no request was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// One of the locks was not acquired.
    #[error("the lock \"{name}\" of a set was not acquired: {error}")]
    At {
        /// The lock.
        name: LockName,
        /// Why it was not acquired.
        #[source]
        error: AcquireError,
    },
}

impl From<AcquireAllError> for TryAcquireError<AcquireAllError> {
    fn from(error: AcquireAllError) -> Self {
        Self::Failed(error)
    }
}

/// Why a lock was not acquired by a holder that may acquire it again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReentrantError {
    /// It was not held yet, and was not acquired.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// It was held before, and that hold was lost. It can be acquired again once all guards of the lost hold are dropped.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl From<ReentrantError> for WhileHeldError {
    fn from(error: ReentrantError) -> Self {
        match error {
            ReentrantError::Acquire(error) => Self::Acquire(error),
            ReentrantError::Lost(lost) => Self::Lost(lost),
        }
    }
}

impl From<Invalid> for ReentrantError {
    fn from(invalid: Invalid) -> Self {
        Self::Acquire(invalid.into())
    }
}

/// Why a job did not run, or why its run does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The plan is invalid, the store cannot do it, or the store failed. The work was not begun.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The slot could not be marked as run, so the work was not begun. If the store may have got the mark, the slot may count as
    /// run.
    #[error("the slot of the job was not marked, and the work was not begun: {0}")]
    NotMarked(#[source] HoldError),
    /// The lock was lost: the work was not begun, was stopped, or its result came too late to count. The reason is `MaxHold` if the work took
    /// longer than `max_hold`.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The store did not confirm a release, a verification or a renewal that the work asked for itself.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// So that code which begins a run and ends it by hand can use `?`.
impl From<HoldError> for JobError {
    fn from(error: HoldError) -> Self {
        error.into_loss().map_or_else(Self::Backend, Self::Lost)
    }
}

/// This machine does not lead any more: it stops what only the leader may do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeadershipLost {
    /// The lease was not renewed in time, and the leader stepped down before the lease could end.
    #[error("stepped down as the leader of \"{name}\" (term {term}): the lease was not renewed in time")]
    NotRenewed {
        /// The election.
        name: LockName,
        /// The term that is over.
        term: FencingToken,
    },
    /// The lease was lost.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Why an election ended for this candidate, other than by its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The campaign failed: an option is invalid, the wait is over or was cancelled, or the store failed.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The work has ended the election, but did not lead to its end.
    #[error(transparent)]
    Lost(#[from] LeadershipLost),
}

/// Why it could not be seen who leads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The name is invalid; no request was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store failed, or cannot say who holds a lock.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The client was closed: it sends no request any more.
    #[error("the client was closed, so it cannot observe who leads; use another client")]
    Closed,
}

/// Locks of a set had been lost, or the store did not confirm their release. All other locks of the set were released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseAllError {
    failures: Vec<(LockName, HoldError)>,
}

impl ReleaseAllError {
    /// The result of releasing a set.
    #[cfg(any(feature = "async", feature = "blocking"))]
    pub(crate) fn of(outcomes: impl IntoIterator<Item = (LockName, Result<(), HoldError>)>) -> Result<(), Self> {
        let failure = |(name, outcome): (LockName, Result<(), _>)| outcome.err().map(|error| (name, error));
        let failures: Vec<_> = outcomes.into_iter().filter_map(failure).collect();
        if failures.is_empty() { Ok(()) } else { Err(Self { failures }) }
    }

    /// The locks that had been lost or whose release was not confirmed, in the order in which they were released.
    pub fn failures(&self) -> &[(LockName, HoldError)] {
        &self.failures
    }

    /// The first of them that had been lost, if there is one: part of the work may have been done without it. If there is
    /// none, no loss was detected until they were released.
    pub fn lost(&self) -> Option<&Lost> {
        self.failures.iter().find_map(|(_, error)| if let HoldError::Lost(lost) = error { Some(lost) } else { None })
    }
}

impl fmt::Display for ReleaseAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, error)) in self.failures.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            f.write_str(separator)?;
            if let HoldError::Lost(lost) = error {
                lost.fmt(f)?;
            } else {
                write!(f, "the release of the lock \"{name}\" was not confirmed: {error}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ReleaseAllError {}

#[cfg(all(test, feature = "blocking"))]
mod tests {
    use lock_core::{Effect, ErrorKind, LossReason, Operation};

    use super::*;

    #[test]
    fn a_failed_release_of_a_set_accounts_for_every_lock() {
        let name = |text: &str| text.parse::<LockName>().unwrap();
        let unconfirmed =
            BackendError::new("test", Operation::Release, ErrorKind::Timeout, Effect::Unknown, "no answer");
        let lost = Lost { name: name("b"), token: FencingToken::try_from(7_i64).unwrap(), reason: LossReason::MaxHold };
        let outcomes =
            [(name("c"), Err(unconfirmed.into())), (name("b"), Err(lost.clone().into())), (name("a"), Ok(()))];
        let error = ReleaseAllError::of(outcomes).unwrap_err();
        assert_eq!((error.failures().len(), error.lost()), (2, Some(&lost)));
        let text = error.to_string();
        assert!(text.starts_with("the release of the lock \"c\" was not confirmed: "), "{text}");
        assert!(text.ends_with(&format!("; {lost}")), "{text}");
        assert_eq!(ReleaseAllError::of([(name("a"), Ok(()))]), Ok(()));
    }
}
