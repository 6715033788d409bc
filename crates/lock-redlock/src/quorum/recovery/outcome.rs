//! What a pass found: for the quorum, which asks the nodes that vote, and for the caller.

use std::time::Duration;

use lock_core::node::{NodeState, View};
use lock_core::{BackendError, Moment};

use super::super::nodes::Nodes;
use super::super::outgoing::NodeId;
use super::super::watch::Wait;
use super::report::{NodeReport, Report};
use super::{Pass, Phase, Purpose};

impl Pass {
    pub(super) fn end(&mut self, nodes: &mut Nodes, now: Moment) {
        for (state, view) in nodes.all.iter_mut().zip(&self.views) {
            state.epoch = match view {
                Ok(View { state: NodeState::Voting(epoch), .. }) => Some(*epoch),
                // It may be back before the next pass.
                Err(error) if error.kind().is_transient() => state.epoch,
                Ok(_) | Err(_) => None,
            };
            state.fault = view.as_ref().err().filter(|error| !error.kind().is_transient()).cloned();
        }
        let report = self.report(nodes, now);
        let waits = report.nodes.iter().filter_map(|node| node.votes_in);
        nodes.watch.wait = waits.min().map(|left| Wait { since: now, left, records: self.records_kept(nodes) });
        nodes.watch.is_blank = report.is_blank();
        nodes.watch.refusal = None;
        nodes.watch.identified = Some(now);
        nodes.announced = self.announced(nodes);
        self.conclude(nodes, now, Ok(report));
    }

    /// The longest ttl that a majority of voters knew at the same time.
    fn announced(&self, nodes: &Nodes) -> Duration {
        let views = self.views.iter().enumerate().filter(|(index, _)| !self.late.contains(&NodeId(*index)));
        let voters = views.filter_map(|(_, view)| view.as_ref().ok()).filter(|view| view.votes());
        let mut known: Vec<_> = voters.map(|view| view.longest).collect();
        known.sort_unstable_by(|a, b| b.cmp(a));
        known.get(nodes.majority() - 1).copied().unwrap_or_default()
    }

    pub(super) fn refuse(&mut self, nodes: &mut Nodes, now: Moment, error: BackendError) {
        // A refused purpose, such as a move, does not stop grants.
        if self.purpose == Purpose::Watch {
            nodes.watch.refusal = Some(error.clone());
        }
        nodes.watch.identified = None;
        self.conclude(nodes, now, Err(error));
    }

    fn conclude(&mut self, nodes: &mut Nodes, now: Moment, verdict: Result<Report, BackendError>) {
        nodes.watch.in_flight = None;
        if self.purpose == Purpose::Watch {
            nodes.watch.last_pass = Some(now);
        }
        self.phase = Phase::Over;
        self.verdict = Some(verdict);
    }

    fn report(&self, nodes: &Nodes, now: Moment) -> Report {
        let unfinished_move = self.undecided_move(nodes, |_| true).cloned();
        let reports = nodes.all.iter().zip(&self.views).enumerate().map(|(index, (state, view))| {
            let node = NodeId(index);
            let dwell = self.dwells.get(&node);
            let abstains = view.as_ref().is_ok_and(|view| !view.votes());
            let beyond = dwell.filter(|dwell| abstains && self.is_beyond_max_ttl(nodes, node, dwell));
            NodeReport {
                address: state.address.clone(),
                view: view.clone(),
                recovery: self.recoveries.get(&node).copied().filter(|_| !abstains),
                votes_in: dwell
                    .filter(|_| abstains && unfinished_move.is_none())
                    .map(|dwell| self.left(nodes, now, node, dwell)),
                beyond_max_ttl: beyond.map(|dwell| dwell.lasts),
            }
        });
        Report { nodes: reports.collect(), majority: nodes.majority(), unfinished_move }
    }
}
