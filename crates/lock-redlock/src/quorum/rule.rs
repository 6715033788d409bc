//! Rules that a test can turn off, to see that it would notice. Without the feature `twins` none can be.

/// A rule of recovery that only a rare order of events needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "twins"), expect(unreachable_pub, reason = "only tests name the rules"))]
pub enum Rule {
    /// A ttl is announced to a majority before it is used.
    Announcement,
    /// A dwell ends by notes only if a majority of the nodes has old ones.
    MajorityOfNotes,
    /// A node that comes back by its clock, while others may know more, takes `max_ttl` for the longest ttl in use.
    LongestByClock,
    /// A dwell has to be over before the look begins that tells how long it is.
    OverBeforeLook,
}

/// Which rules are kept.
#[derive(Debug, Default)]
pub(super) struct Rules {
    #[cfg(feature = "twins")]
    missing: Option<Rule>,
}

#[cfg(feature = "twins")]
impl Rules {
    pub(super) fn keep(&self, rule: Rule) -> bool {
        self.missing != Some(rule)
    }

    pub(super) fn turn_off(&mut self, rule: Rule) {
        self.missing = Some(rule);
    }
}

#[cfg(not(feature = "twins"))]
impl Rules {
    #[expect(clippy::unused_self, reason = "with the feature it is read")]
    pub(super) fn keep(&self, _: Rule) -> bool {
        true
    }
}
