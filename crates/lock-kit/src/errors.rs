//! Why locks of the kit were not acquired, or not released.

use std::fmt;

use lock_core::{AcquireError, BackendError, FencingToken, Invalid, LockName, LossReason, Lost, TryAcquireError};
use lock_host::{Error, HoldError};

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

/// The error of the lock. The name of the lock is lost, unless the error contains it.
impl From<AcquireAllError> for Error {
    fn from(error: AcquireAllError) -> Self {
        match error {
            AcquireAllError::Invalid(error) => error.into(),
            AcquireAllError::At { error, .. } => error.into(),
        }
    }
}

impl From<AcquireAllError> for TryAcquireError<AcquireAllError> {
    fn from(error: AcquireAllError) -> Self {
        Self::Failed(error)
    }
}

/// Why a job did not run, or why its run does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The plan is invalid, the store does not support it, or the store failed. The work was not begun.
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

/// Does not say whether the slot was marked.
impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Acquire(error) => error.into(),
            JobError::NotMarked(error) => error.into(),
            JobError::Lost(lost) => lost.into(),
            JobError::Backend(error) => error.into(),
        }
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
        /// The term that has ended.
        term: FencingToken,
    },
    /// The lease was lost.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl From<LeadershipLost> for Error {
    fn from(error: LeadershipLost) -> Self {
        Self::Lost(match error {
            LeadershipLost::NotRenewed { name, term } => Lost { name, token: term, reason: LossReason::Expired(None) },
            LeadershipLost::Lost(lost) => lost,
        })
    }
}

/// Why an election ended for this candidate, other than by its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The campaign failed: an option is invalid, the wait timed out or was cancelled, or the store failed.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The work ended the election, but this candidate was no longer the leader by then.
    #[error(transparent)]
    Lost(#[from] LeadershipLost),
}

impl From<ElectionError> for Error {
    fn from(error: ElectionError) -> Self {
        match error {
            ElectionError::Acquire(error) => error.into(),
            ElectionError::Lost(lost) => lost.into(),
        }
    }
}

/// Why it could not be seen who leads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The name is invalid; no request was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store failed, or cannot show the holder of a lock.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The client was closed: it sends no request any more.
    #[error("the client was closed, so it cannot observe who leads; use another client")]
    Closed,
}

impl From<ObserveError> for Error {
    fn from(error: ObserveError) -> Self {
        match error {
            ObserveError::Invalid(error) => error.into(),
            ObserveError::Backend(error) => error.into(),
            ObserveError::Closed => Self::Acquire(AcquireError::Closed),
        }
    }
}

/// Locks of a set had been lost, or the store did not confirm their release. All other locks of the set were released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseAllError {
    failures: Vec<(LockName, HoldError)>,
    /// The first loss, or else the first failure.
    worst: HoldError,
}

impl ReleaseAllError {
    /// The result of releasing a set.
    #[cfg(any(feature = "async", feature = "blocking"))]
    pub(crate) fn of(outcomes: impl IntoIterator<Item = (LockName, Result<(), HoldError>)>) -> Result<(), Self> {
        let failure = |(name, outcome): (LockName, Result<(), _>)| outcome.err().map(|error| (name, error));
        let failures: Vec<_> = outcomes.into_iter().filter_map(failure).collect();
        let is_lost = |error: &HoldError| matches!(error, HoldError::Lost(_));
        let worst = failures.iter().map(|(_, error)| error).min_by_key(|error| !is_lost(error)).cloned();
        worst.map_or(Ok(()), |worst| Err(Self { failures, worst }))
    }

    /// The locks that had been lost or whose release was not confirmed, in the order in which they were released.
    pub fn failures(&self) -> &[(LockName, HoldError)] {
        &self.failures
    }

    /// The first of them that had been lost, if there is one: part of the work may have been done without it. If there is
    /// none, no loss was detected until they were released.
    pub fn lost(&self) -> Option<&Lost> {
        if let HoldError::Lost(lost) = &self.worst { Some(lost) } else { None }
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

/// The first loss, or else the first failure.
impl From<ReleaseAllError> for Error {
    fn from(error: ReleaseAllError) -> Self {
        error.worst.into()
    }
}

#[cfg(all(test, feature = "blocking"))]
mod tests {
    use lock_core::{Effect, ErrorKind, Operation};

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
        assert_eq!(Error::from(error), Error::Lost(lost));
        assert_eq!(ReleaseAllError::of([(name("a"), Ok(()))]), Ok(()));
    }
}
