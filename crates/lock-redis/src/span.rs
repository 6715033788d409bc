//! The time limit of a request.

use std::time::{Duration, Instant};

/// The time that a request may take.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) until: Instant,
    pub(crate) within: Duration,
}

impl Span {
    pub(crate) fn from_now(within: Duration) -> Self {
        Self { until: Instant::now() + within, within }
    }

    /// The same with a limit on what is left of it.
    pub(crate) fn at_most(self, limit: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + limit), within: self.within.min(limit) }
    }

    /// Whether a wait until then would be hardly longer. A tenth is as exact as a socket's timeout.
    pub(crate) fn covers(&self, until: Instant) -> bool {
        until.saturating_duration_since(self.until) <= self.left() / 10
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}
