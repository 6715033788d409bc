//! State for observers alone.

use std::time::Duration;

use super::by_turn::ByTurn;
use super::event::Event;
use super::io::TurnId;
use crate::{FencingToken, Moment};

/// State for observers alone.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The events that were not taken yet.
    pub(super) events: Vec<(Option<TurnId>, Event)>,
    pub(super) waiters: Contention,
    /// The holds whose end was not reported, except those whose release is pending.
    pub(super) holds: ByTurn<ReportedHold>,
}

/// State of all waiters together. It ends with the last of them.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// Their first known position in the store's queue. The first of them that is admitted had it.
    pub(super) position: Option<u32>,
    /// Since when others are known to have what they wait for.
    pub(super) taken_since: Option<Moment>,
}

/// A hold that was reported as acquired, until its end is reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedHold {
    pub(super) token: FencingToken,
    pub(super) since: Moment,
    /// When the first try of its release failed.
    pub(super) failed_at: Option<Moment>,
}

impl ReportedHold {
    pub(super) fn held(self, now: Moment) -> Duration {
        self.failed_at.unwrap_or(now).since(self.since)
    }
}
