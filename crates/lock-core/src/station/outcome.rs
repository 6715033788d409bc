//! The ways in which a wait ends without the lock.

use std::fmt;

use crate::{AcquireError, Holder, Refusal};

/// How a wait ended without the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The lock is held, and the call did not wait.
    #[non_exhaustive]
    Busy {
        /// The holder, if known.
        holder: Option<Holder>,
    },
    /// The wait, or the requests that it may take, ended while the lock was held.
    #[non_exhaustive]
    TimedOut {
        /// The last known holder, if any.
        holder: Option<Holder>,
    },
    /// The call was cancelled with a token.
    Cancelled,
    /// The client was closed.
    Closed,
    /// The future of the call was dropped.
    Dropped,
    /// The store failed, or its tokens fell.
    Failed(AcquireError),
}

impl Outcome {
    /// How it ended, in a few fixed words, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::TimedOut { .. } => "timed out",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::Dropped => "dropped",
            Self::Failed(_) => "failed",
        }
    }

    /// The holder, if known.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::Busy { holder } | Self::TimedOut { holder } => holder.as_ref(),
            Self::Cancelled | Self::Closed | Self::Dropped | Self::Failed(_) => None,
        }
    }
}

impl From<&Refusal> for Outcome {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Busy { holder } => Self::Busy { holder: holder.clone() },
            Refusal::Error(AcquireError::TimedOut { holder, .. }) => Self::TimedOut { holder: holder.clone() },
            Refusal::Error(AcquireError::Cancelled) => Self::Cancelled,
            Refusal::Error(AcquireError::Closed) => Self::Closed,
            Refusal::Error(error) => Self::Failed(error.clone()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { holder } | Self::TimedOut { holder } => f.write_str(&Holder::obstacle(holder.as_ref())),
            Self::Cancelled => f.write_str("the wait was cancelled"),
            Self::Closed => f.write_str("the client was closed"),
            Self::Dropped => f.write_str("the call was dropped"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}
