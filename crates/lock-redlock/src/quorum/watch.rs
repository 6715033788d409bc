//! When recovery passes run, and what the last one found.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{BackendError, Moment};

/// How soon the next pass looks at nodes that abstain. Chosen: often enough to end a short dwell in time.
const PASS_EVERY: Duration = Duration::from_millis(250);
/// How soon the next pass looks at nodes that could not be reached.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How soon a client that only inspects looks again which nodes count. Chosen: a deployment is rarely moved.
const IDENTIFY_EVERY: Duration = Duration::from_secs(10);
/// A pass that takes longer has ended with the runtime that ran it.
const PASS_MAX: Duration = Duration::from_secs(10);

/// When passes run, and what they found.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) in_flight: Option<Moment>,
    pub(super) last_pass: Option<Moment>,
    /// When a pass of any purpose last found which nodes count.
    pub(super) identified: Option<Moment>,
    /// When this client first saw each epoch abstain.
    pub(super) seen: BTreeMap<Epoch, Moment>,
    /// Why nothing can be granted, as the last pass found.
    pub(super) refusal: Option<BackendError>,
    /// How long until the first node may vote again, as the last pass knew.
    pub(super) wait: Option<Wait>,
    /// Whether no node was ever part of a deployment, when last seen.
    pub(super) is_blank: bool,
}

/// How much longer nodes abstain.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) since: Moment,
    pub(super) left: Duration,
    pub(super) records: Records,
}

/// Whether enough nodes have recorded which ones abstain, for clients that come later.
#[derive(Debug)]
pub(super) enum Records {
    Kept,
    /// They have not, for this reason if a node gave one. So only a client that keeps running can end the wait.
    Lacking(Option<BackendError>),
}

impl Wait {
    pub(super) fn left(&self, now: Moment) -> Duration {
        self.left.saturating_sub(now.since(self.since))
    }
}

impl Watch {
    /// Whether it is time to look which nodes count.
    pub(super) fn may_identify(&self, now: Moment) -> bool {
        !recent(now, self.in_flight, PASS_MAX) && !recent(now, self.identified, IDENTIFY_EVERY)
    }

    /// Whether the next pass may begin. There is one at a time.
    pub(super) fn may_pass(&self, now: Moment) -> bool {
        let rest = if self.wait.is_some() { PASS_EVERY } else { LOOK_EVERY };
        !recent(now, self.in_flight, PASS_MAX) && !recent(now, self.last_pass, rest)
    }
}

fn recent(now: Moment, at: Option<Moment>, within: Duration) -> bool {
    at.is_some_and(|at| now.since(at) < within)
}
