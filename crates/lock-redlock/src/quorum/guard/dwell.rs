//! How long a node abstains, and how much of that is over.

use std::time::Duration;

use lock_core::node::{Epoch, NodeState, Noted, View};
use lock_core::{Moment, drift};

use super::super::{NodeId, Quorum};
use super::notes::agreed;
use super::{Guard, Purpose, Recovery};
use crate::DEFAULT_MAX_TTL;

/// No dwell is shorter, however short the leases are that the others know of: a ttl may be announced, and a claim granted and
/// forgotten, since they were looked at. Chosen: more than an announcement or a look takes, and about what a restart does.
const DWELL_MIN: Duration = Duration::from_secs(2);

/// What nodes say within less than this is true of all of them at once: none of them can have forgotten it, dwelled, and be
/// back meanwhile.
pub(in super::super) fn at_once() -> Duration {
    DWELL_MIN.saturating_sub(drift(DWELL_MIN))
}

/// How long a node has to abstain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dwell {
    pub(super) epoch: Epoch,
    lasts: Duration,
    pub(super) longest: Duration,
    pub(super) recovery: Recovery,
}

impl Guard {
    pub(super) fn measure_dwells(&mut self, quorum: &Quorum) {
        for (node, epoch) in self.abstaining() {
            let dwell = self.dwell(quorum, node, epoch);
            self.dwells.insert(node, dwell);
        }
    }

    /// How long each has to wait that does not vote, by the node's own word for when it began.
    pub(super) fn foresee(&mut self, quorum: &Quorum) {
        for node in quorum.nodes() {
            let (epoch, age) = match &self.views[node.0] {
                Ok(View { state: NodeState::Abstaining { epoch, since }, .. }) => (*epoch, *since),
                Ok(View { state: NodeState::Forgetful, .. }) => (self.epochs[node.0], Duration::ZERO),
                Ok(View { state: NodeState::Voting(_), .. }) | Err(_) => continue,
            };
            self.notes.insert(node, vec![Noted { epoch, age }; quorum.majority()]);
            let dwell = self.dwell(quorum, node, epoch);
            self.dwells.insert(node, dwell);
        }
    }

    /// Any lease that this node granted and forgot is known to a majority less itself; so enough of the others include one
    /// that knows its ttl, and one that knows its token.
    fn dwell(&self, quorum: &Quorum, node: NodeId, epoch: Epoch) -> Dwell {
        let others = self.views.iter().enumerate().filter(|(index, _)| *index != node.0);
        let others: Vec<_> = others.filter_map(|(_, view)| view.as_ref().ok()).filter(|view| view.votes()).collect();
        let own = self.views[node.0].as_ref().map_or(Duration::ZERO, |view| view.longest);
        let longest = others.iter().map(|view| view.longest).max().unwrap_or_default().max(own);
        let most = self.most(quorum, node);
        let (lasts, longest, recovery) = if self.purpose == Purpose::Found {
            (Duration::ZERO, longest, Recovery::FromOthers)
        } else if others.len() >= quorum.blocking() {
            (longest + drift(longest), longest, Recovery::FromOthers)
        } else if self.views.iter().all(|view| view.as_ref().is_ok_and(|view| !view.votes())) {
            // Every client has to look anew, and to announce anew.
            (most + drift(most), longest, Recovery::ByClock)
        } else {
            // What was announced is not known to be known, so from now on it counts as everything.
            (most + drift(most), quorum.membership.max_ttl, Recovery::ByClock)
        };
        let least = if self.purpose == Purpose::Found { Duration::ZERO } else { DWELL_MIN };
        Dwell { epoch, lasts: lasts.max(least), longest, recovery }
    }

    /// The longest that a node may have granted. One that knows no deployment may have been part of one that allowed more
    /// than this client does.
    fn most(&self, quorum: &Quorum, node: NodeId) -> Duration {
        let max_ttl = quorum.membership.max_ttl;
        let is_blank = self.views[node.0].as_ref().is_ok_and(|view| view.membership.is_none());
        if is_blank { max_ttl.max(DEFAULT_MAX_TTL) } else { max_ttl }
    }

    /// How long the dwell had to last yet when the counters were read.
    pub(super) fn left(&self, quorum: &Quorum, now: Moment, node: NodeId, dwell: &Dwell) -> Duration {
        let seen = quorum.watch.seen.get(&dwell.epoch).map_or(Duration::ZERO, |seen| self.looked_at.since(*seen));
        let noted = agreed(self.ages(node, dwell.epoch), quorum.majority());
        // So old was the youngest of them when the pass began.
        let noted = noted.unwrap_or_default().saturating_sub(now.since(self.looked_at));
        dwell.lasts.saturating_sub(seen.max(noted))
    }
}
