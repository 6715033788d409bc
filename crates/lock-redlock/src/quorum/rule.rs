//! Rules of the restart guard that a test can turn off, to see that it would notice. Without the feature `twins` none can be.

use super::Quorum;

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

impl Quorum {
    pub(super) fn keeps(&self, rule: Rule) -> bool {
        #[cfg(feature = "twins")]
        return self.missing != Some(rule);
        #[cfg(not(feature = "twins"))]
        {
            _ = rule;
            true
        }
    }

    /// Turns a rule off. Two clients can then hold one lock: for tests alone.
    #[cfg(feature = "twins")]
    pub fn turn_off(&mut self, rule: Rule) {
        self.missing = Some(rule);
    }
}
