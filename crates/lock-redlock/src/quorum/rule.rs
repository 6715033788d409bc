//! What the simulator may change about the restart guard: with the feature `twins` a rule can be turned off, to see that a test
//! notices, and blank nodes can dwell for a shorter time. Without the feature nothing can be changed.

use std::time::Duration;

use super::Quorum;
use crate::DEFAULT_MAX_TTL;

/// A rule of the restart guard that only a rare order of events needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "twins"), expect(unreachable_pub, reason = "only tests name the rules"))]
pub enum Rule {
    /// A ttl is announced to a majority before it is used.
    Announcement,
    /// A dwell ends by notes only where a majority of the nodes has old ones.
    MajorityOfNotes,
    /// A node that comes back by its clock, while others may know more, takes `max_ttl` for the longest ttl in use.
    LongestByClock,
    /// A dwell has to be over before the look begins that tells how long it is.
    OverBeforeLook,
}

/// What differs from the guard as users have it.
#[cfg(feature = "twins")]
#[derive(Debug, Default)]
pub(super) struct Twin {
    missing: Option<Rule>,
    blank_dwell: Option<Duration>,
}

#[cfg(feature = "twins")]
impl Quorum {
    /// Turns a rule off. Two clients can then hold one lock: for tests alone.
    pub fn turn_off(&mut self, rule: Rule) {
        self.twin.missing = Some(rule);
    }

    /// Sets how long a node abstains at least that knows of no deployment. It has to be at least the longest `max_ttl` that any
    /// client of these nodes has: for tests alone.
    pub fn set_blank_dwell(&mut self, dwell: Duration) {
        self.twin.blank_dwell = Some(dwell);
    }

    pub(super) fn keeps(&self, rule: Rule) -> bool {
        self.twin.missing != Some(rule)
    }

    pub(super) fn blank_dwell(&self) -> Duration {
        self.twin.blank_dwell.unwrap_or(DEFAULT_MAX_TTL)
    }
}

#[cfg(not(feature = "twins"))]
#[expect(clippy::unused_self, reason = "it is looked up with the feature `twins`")]
impl Quorum {
    pub(super) fn keeps(&self, _: Rule) -> bool {
        true
    }

    pub(super) fn blank_dwell(&self) -> Duration {
        DEFAULT_MAX_TTL
    }
}
