//! What comes of a pass: for the quorum, which asks those that vote, and for whoever wanted it.

use std::time::Duration;

use lock_core::node::{NodeState, View};
use lock_core::{BackendError, Moment};

use super::super::watch::Wait;
use super::super::{NodeId, Quorum};
use super::{Guard, NodeReport, Phase, Purpose, Report};

impl Guard {
    pub(super) fn end(&mut self, quorum: &mut Quorum, now: Moment) {
        for (peer, view) in quorum.peers.iter_mut().zip(&self.views) {
            peer.epoch = match view {
                Ok(View { state: NodeState::Voting(epoch), .. }) => Some(*epoch),
                // It may be back before the next pass.
                Err(error) if error.kind().is_transient() => peer.epoch,
                Ok(_) | Err(_) => None,
            };
            peer.fault = view.as_ref().err().filter(|error| !error.kind().is_transient()).cloned();
        }
        let report = self.report(quorum, now);
        let waits = report.nodes.iter().filter_map(|node| node.votes_in);
        quorum.watch.wait = waits.min().map(|left| Wait { since: now, left, notes: self.notes_kept(quorum) });
        quorum.watch.is_blank = report.is_blank();
        quorum.watch.refusal = None;
        quorum.announced = self.announced(quorum);
        self.conclude(quorum, now, Ok(report));
    }

    /// What a majority of voters knows to be the longest ttl, all of them at once.
    fn announced(&self, quorum: &Quorum) -> Duration {
        let views = self.views.iter().enumerate().filter(|(index, _)| !self.late.contains(&NodeId(*index)));
        let voters = views.filter_map(|(_, view)| view.as_ref().ok()).filter(|view| view.votes());
        let mut known: Vec<_> = voters.map(|view| view.longest).collect();
        known.sort_unstable_by(|a, b| b.cmp(a));
        known.get(quorum.majority() - 1).copied().unwrap_or_default()
    }

    pub(super) fn refuse(&mut self, quorum: &mut Quorum, now: Moment, error: BackendError) {
        // What was asked for besides says nothing of what may be granted.
        if self.purpose == Purpose::Watch {
            quorum.watch.refusal = Some(error.clone());
        }
        self.conclude(quorum, now, Err(error));
    }

    fn conclude(&mut self, quorum: &mut Quorum, now: Moment, verdict: Result<Report, BackendError>) {
        quorum.watch.under_way = None;
        if self.purpose == Purpose::Watch {
            quorum.watch.last_pass = Some(now);
        }
        self.phase = Phase::Over;
        self.verdict = Some(verdict);
    }

    fn report(&self, quorum: &Quorum, now: Moment) -> Report {
        let nodes = quorum.peers.iter().zip(&self.views).enumerate().map(|(index, (peer, view))| {
            let node = NodeId(index);
            let dwell = self.dwells.get(&node);
            let abstains = view.as_ref().is_ok_and(|view| !view.votes());
            NodeReport {
                address: peer.address.clone(),
                view: view.clone(),
                recovery: self.recoveries.get(&node).copied().filter(|_| !abstains),
                votes_in: dwell.filter(|_| abstains).map(|dwell| self.left(quorum, now, node, dwell)),
            }
        });
        Report { nodes: nodes.collect(), majority: quorum.majority() }
    }
}
