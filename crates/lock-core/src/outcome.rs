//! The outcomes of asking for a lock.

use std::time::Duration;

use crate::{BackendError, FencingToken, Holder, Invalid, LockName};

/// Why a lock was not acquired. Nothing is left at the store, or it is being released in the background.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The name or an option is invalid; no request was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The wait, or the requests that it may take, ended before the lock was free. If the store had not said that the lock is held, the error
    /// is `Backend` instead.
    #[error("waited {} for the lock \"{name}\"; {}", humantime::format_duration(*waited), Holder::obstacle(holder.as_ref()))]
    TimedOut {
        /// The lock.
        name: LockName,
        /// How long the wait lasted, in whole milliseconds.
        waited: Duration,
        /// The holder, as the store last reported. The lock may have been free, with others before this waiter in the queue.
        holder: Option<Holder>,
    },
    /// The store granted a token that is not above one that this client has had, so the store lost its memory.
    ///
    /// The grant was given back: a resource that checks tokens would refuse its writes.
    #[error(
        "the store forgot the lock \"{name}\": it granted token {token}, but {floor} was granted before; restore the store's token counter, or wait until its clock is past that"
    )]
    Forgotten {
        /// The lock.
        name: LockName,
        /// What the store granted.
        token: FencingToken,
        /// The highest token that this client has had.
        floor: FencingToken,
    },
    /// The ticket is not valid any more, so nobody can adopt it.
    #[error(
        "the ticket for the lock \"{name}\" was adopted already, was released, or its ttl has expired; acquire the lock again"
    )]
    TicketOver {
        /// The lock.
        name: LockName,
    },
    /// The store failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// This client was closed with `Client::close`, before or during the call.
    #[error("the client was closed")]
    Closed,
    /// The `CancelToken` among the options was cancelled.
    #[error("the wait was cancelled")]
    Cancelled,
}

/// The lock is not free, according to the store. The answer to a call that does not wait.
///
/// Usually somebody else holds it. For a reader, a writer holds it or waits for it. For a semaphore, too few permits are free, or
/// an earlier waiter comes first. Of several holders, the one whose lease ends last is named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock \"{name}\" is not free; {}", Holder::obstacle(holder.as_ref()))]
pub struct Busy {
    /// The lock.
    pub name: LockName,
    /// The holder, or a waiter before the caller, if known.
    pub holder: Option<Holder>,
}

/// Why a call that does not wait did not acquire a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryAcquireError<E = AcquireError> {
    /// The lock is not free: an answer, not a failure.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The call failed.
    #[error(transparent)]
    Failed(E),
}

impl<E> TryAcquireError<E> {
    /// The outcome of a call for which a lock that is not free is `None`.
    ///
    /// # Errors
    /// That of a call that failed.
    pub fn unless_busy<G>(outcome: Result<G, Self>) -> Result<Option<G>, E> {
        match outcome {
            Ok(guard) => Ok(Some(guard)),
            Err(Self::Busy(_)) => Ok(None),
            Err(Self::Failed(error)) => Err(error),
        }
    }
}

impl From<AcquireError> for TryAcquireError {
    fn from(error: AcquireError) -> Self {
        Self::Failed(error)
    }
}

/// A lock that is not free is like a wait that has ended at once.
impl From<TryAcquireError> for AcquireError {
    fn from(error: TryAcquireError) -> Self {
        match error {
            TryAcquireError::Busy(Busy { name, holder }) => Self::TimedOut { name, waited: Duration::ZERO, holder },
            TryAcquireError::Failed(error) => error,
        }
    }
}

/// Why a waiter was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The lock is held, and the caller did not want to wait: an answer, not an error.
    Busy {
        /// The holder, if known.
        holder: Option<Holder>,
    },
    /// An error.
    Error(AcquireError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Note, TokenRange, Width};

    #[test]
    fn a_wait_that_ended_names_the_holder_as_far_as_it_is_known() {
        let (tokens, note) = (TokenRange::above(6, Width::ONE).unwrap(), Note::from_wire("2@elsewhere"));
        let text = |holder| {
            let (name, waited) = ("a".parse().unwrap(), Duration::from_millis(1500));
            AcquireError::TimedOut { name, waited, holder }.to_string()
        };
        let waited = "waited 1s 500ms for the lock \"a\"; ";
        assert_eq!(text(None), format!("{waited}somebody holds it or waits before you"));
        assert_eq!(text(Some(Holder::Foreign)), format!("{waited}something other than leasehold holds it"));
        let leasehold = Some(Holder::Leasehold { tokens, note: note.clone() });
        assert_eq!(text(leasehold), format!("{waited}{note} holds it or waits before you"));
        assert!(!note.to_string().is_empty());
        let busy = Busy { name: "a".parse().unwrap(), holder: Some(Holder::Foreign) };
        assert_eq!(busy.to_string(), "the lock \"a\" is not free; something other than leasehold holds it");
    }
}
