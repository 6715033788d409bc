//! What the simulator may change: with the feature `twins` a rule can be turned off, to check that a
//! test notices, and blank nodes can dwell for a shorter time. Without the feature nothing can be changed.

use std::time::Duration;

use crate::DEFAULT_MAX_TTL;

/// A rule that matters only in a rare order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "twins"), expect(unreachable_pub, reason = "only tests name the rules"))]
pub enum Rule {
    /// A ttl is announced to a majority before it is used.
    Announcement,
    /// A dwell ends by records only if a majority of the nodes has old ones.
    MajorityOfRecords,
    /// A node that is restored by its clock, while others may know more, takes `max_ttl` as the longest ttl in use.
    LongestByClock,
    /// A dwell must be over before the look that determines its length begins.
    OverBeforeLook,
    /// While nodes of another deployment answer, a blank node does not count towards a majority, and is not restored
    /// unless a majority votes in this deployment.
    BlankMayBeTheirs,
    /// While a node of a later move answers, a node of this deployment that restarted counts as a blank one.
    OutdatedIsBlank,
    /// A release waits for the outcome of its claim at each node.
    ReleaseAfterClaim,
}

/// Which rules are kept.
#[derive(Debug, Default)]
pub(super) struct Rules {
    #[cfg(feature = "twins")]
    missing: Option<Rule>,
    #[cfg(feature = "twins")]
    blank_dwell: Option<Duration>,
}

#[cfg(feature = "twins")]
impl Rules {
    pub(super) fn keep(&self, rule: Rule) -> bool {
        self.missing != Some(rule)
    }

    /// How long a node that knows no deployment abstains at least.
    pub(super) fn blank_dwell(&self) -> Duration {
        self.blank_dwell.unwrap_or(DEFAULT_MAX_TTL)
    }

    pub(super) fn turn_off(&mut self, rule: Rule) {
        self.missing = Some(rule);
    }

    pub(super) fn set_blank_dwell(&mut self, dwell: Duration) {
        self.blank_dwell = Some(dwell);
    }
}

#[cfg(not(feature = "twins"))]
#[expect(clippy::unused_self, reason = "with the feature it is read")]
impl Rules {
    pub(super) fn keep(&self, _: Rule) -> bool {
        true
    }

    /// How long a node that knows no deployment abstains at least.
    pub(super) fn blank_dwell(&self) -> Duration {
        DEFAULT_MAX_TTL
    }
}
