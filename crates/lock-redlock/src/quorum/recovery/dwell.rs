//! How long a node abstains, and how much of that is over.

use std::time::Duration;

use lock_core::node::{Epoch, NodeState, Record, View};
use lock_core::{Moment, drift};

use super::super::nodes::Nodes;
use super::super::outgoing::NodeId;
use super::super::rule::Rule;
use super::records::agreed;
use super::report::Recovery;
use super::{DWELL_MIN, Dwell, Pass, Purpose};

impl Pass {
    pub(super) fn measure_dwells(&mut self, nodes: &Nodes) {
        for (node, epoch) in self.abstaining() {
            let dwell = self.dwell(nodes, node, epoch);
            self.dwells.insert(node, dwell);
        }
    }

    /// How long each node that does not vote has to wait, by its own record of when that began.
    pub(super) fn foresee(&mut self, nodes: &Nodes) {
        for node in nodes.ids() {
            let (epoch, age) = match &self.views[node.0] {
                Ok(View { state: NodeState::Abstaining { epoch, since }, .. }) => (*epoch, *since),
                Ok(View { state: NodeState::Forgetful, .. }) => (self.epochs[node.0], Duration::ZERO),
                Ok(View { state: NodeState::Voting(_), .. }) | Err(_) => continue,
            };
            self.records.insert(node, vec![Record { epoch, age }; nodes.majority()]);
            let dwell = self.dwell(nodes, node, epoch);
            self.dwells.insert(node, dwell);
        }
    }

    /// A lease that this node granted and forgot is known to a majority without it. So if enough of the others answer,
    /// one of them knows its ttl, and one knows its token. After a move it was granted in another deployment, of which they know
    /// nothing, until a majority votes here.
    fn dwell(&self, nodes: &Nodes, node: NodeId, epoch: Epoch) -> Dwell {
        let others = self.views.iter().enumerate().filter(|(index, _)| *index != node.0);
        let others: Vec<_> = others.filter_map(|(_, view)| view.as_ref().ok()).filter(|view| view.votes()).collect();
        let own = self.views[node.0].as_ref().map_or(Duration::ZERO, |view| view.longest);
        let longest = others.iter().map(|view| view.longest).max().unwrap_or_default().max(own);
        let most = self.most(nodes, node);
        let (lasts, longest, recovery) = if self.purpose == Purpose::Init {
            (Duration::ZERO, longest, Recovery::FromOthers)
        } else if others.len() >= nodes.overlap() && !self.is_fresh(nodes) {
            (longest + drift(longest), longest, Recovery::FromOthers)
        } else if self.views.iter().all(|view| view.as_ref().is_ok_and(|view| !view.votes())) {
            // Every client has to look and to announce again.
            (most + drift(most), longest, self.without_voters(nodes))
        } else {
            // What was announced is unknown, so from now on it counts as `max_ttl`.
            let longest = if nodes.rules.keep(Rule::LongestByClock) { nodes.membership.max_ttl } else { longest };
            (most + drift(most), longest, self.without_voters(nodes))
        };
        let least = if self.purpose == Purpose::Init { Duration::ZERO } else { DWELL_MIN };
        Dwell { epoch, lasts: lasts.max(least), longest, recovery }
    }

    /// How a counter is recovered if too few of the others vote.
    fn without_voters(&self, nodes: &Nodes) -> Recovery {
        let mut predecessors = self.views.iter().flatten().filter_map(|view| view.predecessor.as_ref());
        let kept = predecessors.any(|predecessor| self.are_counters_kept(nodes, predecessor));
        if kept { Recovery::FromOthers } else { Recovery::ByClock }
    }

    /// The longest ttl that a node may have granted. A node that knows no deployment may have belonged to one that
    /// allowed more than this client does.
    fn most(&self, nodes: &Nodes, node: NodeId) -> Duration {
        let max_ttl = nodes.membership.max_ttl;
        let is_blank = self.views[node.0].as_ref().is_ok_and(|view| view.membership.is_none());
        if is_blank { max_ttl.max(nodes.rules.blank_dwell()) } else { max_ttl }
    }

    /// Whether it lasts for longer than `max_ttl`, because nobody can tell which one applied to the node.
    pub(super) fn is_beyond_max_ttl(&self, nodes: &Nodes, node: NodeId, dwell: &Dwell) -> bool {
        let (max_ttl, most) = (nodes.membership.max_ttl, self.most(nodes, node));
        most > max_ttl && dwell.lasts >= most
    }

    /// Whether what this node granted before it was moved has expired.
    pub(super) fn has_waited(&self, nodes: &Nodes, now: Moment, node: NodeId) -> bool {
        let is_over = |dwell: &Dwell| self.left(nodes, now, node, dwell).is_zero();
        self.views[node.0].as_ref().is_ok_and(View::votes) || self.dwells.get(&node).is_some_and(is_over)
    }

    /// How much of the dwell was left when the counters were read.
    pub(super) fn left(&self, nodes: &Nodes, now: Moment, node: NodeId, dwell: &Dwell) -> Duration {
        let until = if nodes.rules.keep(Rule::OverBeforeLook) { self.looked_at } else { now };
        let enough = if nodes.rules.keep(Rule::MajorityOfRecords) { nodes.majority() } else { 1 };
        let seen = nodes.watch.seen.get(&dwell.epoch).map_or(Duration::ZERO, |seen| until.since(*seen));
        let recorded = agreed(self.ages(node, dwell.epoch), enough);
        // Its age when the pass began.
        let recorded = recorded.unwrap_or_default().saturating_sub(now.since(until));
        dwell.lasts.saturating_sub(seen.max(recorded))
    }
}
