//! Why a request about a latch, or a wait for one, failed.

use std::time::Duration;

use super::request::{Count, LatchState};
use crate::{BackendError, Invalid, LockName};

/// Why a request about a latch, or a wait for one, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LatchError {
    /// The name, an id, a count or the ttl is invalid; no request was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The wait ended before all had arrived. If the store did not answer at the end, the error is `Backend` instead.
    #[error("waited {} for the latch \"{name}\"; {}", humantime::format_duration(*waited), progress(state.as_ref()))]
    TimedOut {
        /// The latch.
        name: LockName,
        /// How long the wait was to last, in whole milliseconds.
        waited: Duration,
        /// The latch at the end of the wait; `None` if nobody had used it.
        state: Option<LatchState>,
    },
    /// The generation expects another number of arrivals. Nothing was changed.
    #[error(
        "the latch \"{name}\" expects {expected} arrivals, not {asked}; give the same number everywhere, or reset the latch first"
    )]
    OtherCount {
        /// The latch.
        name: LockName,
        /// How many it expects.
        expected: Count,
        /// How many the call named.
        asked: Count,
    },
    /// The generation that the wait was for was reset before it was complete, or forgotten and begun anew.
    #[error("the latch \"{name}\" was reset before all had arrived; wait again for the new generation")]
    Reset {
        /// The latch.
        name: LockName,
    },
    /// The store has forgotten the arrivals during the wait: the ttl of the latch expired, or the store lost its data.
    #[error(
        "the store has forgotten the latch \"{name}\": its ttl passed without an arrival, or the store lost its data; begin again, with a longer ttl if that is why"
    )]
    Expired {
        /// The latch.
        name: LockName,
    },
    /// The store failed, or offers no latches. The effect says whether the request may have been counted.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// This client was closed with `Client::close`, before or during the call.
    #[error("the client was closed")]
    Closed,
    /// The `CancelToken` of the latch was cancelled.
    #[error("the wait was cancelled")]
    Cancelled,
}

impl LatchError {
    /// How many were missing when the wait timed out; `None` for any other error, and if nobody had said how many are
    /// expected.
    pub fn missing(&self) -> Option<u32> {
        match self {
            Self::TimedOut { state, .. } => state.as_ref()?.missing(),
            Self::Invalid(_)
            | Self::OtherCount { .. }
            | Self::Reset { .. }
            | Self::Expired { .. }
            | Self::Backend(_)
            | Self::Closed
            | Self::Cancelled => None,
        }
    }
}

fn progress(state: Option<&LatchState>) -> String {
    let Some(state) = state else { return "nobody has arrived, and no count is set".to_owned() };
    match (state.expected, state.missing()) {
        (Some(expected), Some(missing)) => format!("{missing} of {expected} are missing"),
        (_, _) => format!("{} have arrived, but no count is set", state.arrived),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latch::request::Generation;

    #[test]
    fn a_wait_that_is_over_says_how_many_are_missing() {
        let text = |state| {
            let (name, waited) = ("a".parse().unwrap(), Duration::from_secs(5));
            let error = LatchError::TimedOut { name, waited, state };
            (error.to_string(), error.missing())
        };
        let state = LatchState { arrived: 3, ..LatchState::new(Generation::new(1)) };
        let expecting = LatchState { expected: Some(Count::new(5).unwrap()), ..state };
        let waited = "waited 5s for the latch \"a\"; ";
        assert_eq!(text(None), (format!("{waited}nobody has arrived, and no count is set"), None));
        assert_eq!(text(Some(state)), (format!("{waited}3 have arrived, but no count is set"), None));
        assert_eq!(text(Some(expecting)), (format!("{waited}2 of 5 are missing"), Some(2)));
        assert_eq!(LatchError::Closed.missing(), None);
    }
}
