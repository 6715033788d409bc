//! Round two: the highest token of a majority of grants is acknowledged by a majority.

use std::sync::Arc;

use lock_core::node::{Ask, Told};
use lock_core::{Fenced, Lease, Moment};

use super::super::nodes::Nodes;
use super::super::outgoing::{NodeId, Outcome};
use super::ballot::Vote;
use super::{Acquire, Round};

impl Acquire {
    /// A grant of exactly T counts as acknowledged. Nodes that have not answered are asked, too: the acknowledgement
    /// follows the grant.
    pub(super) fn begin_round_two(&mut self, nodes: &mut Nodes, now: Moment) {
        let token = self.grants().max().unwrap_or(self.wish);
        let leases: Arc<[Lease]> = match self.lease(token) {
            Ok(lease) => Arc::from([lease]),
            Err(error) => return self.end(Err(error)),
        };
        let mut open = 0;
        for ballot in &mut self.ballots {
            ballot.acknowledged = ballot.drew(token);
            match ballot.vote {
                Vote::Granted(_) | Vote::Asked if !ballot.acknowledged => {
                    let ask = Ask::Fence { leases: Arc::clone(&leases), epoch: ballot.voter.epoch };
                    nodes.send(ballot.voter.node, ask, self.within);
                    open += 1;
                }
                Vote::Granted(_) | Vote::Asked | Vote::Held(..) | Vote::Failed(_) | Vote::Abstained => {}
            }
        }
        self.round = Round::Two { token, open };
        self.count_acknowledged(nodes, now);
    }

    pub(super) fn acknowledge(&mut self, nodes: &mut Nodes, now: Moment, node: NodeId, outcome: Outcome) {
        let Round::Two { open, .. } = &mut self.round else { return };
        *open -= 1;
        if let Ok(Told::Fenced(answers)) = outcome
            && answers == [Fenced::Acknowledged]
            && let Some(ballot) = self.ballots.iter_mut().find(|ballot| ballot.voter.node == node)
        {
            ballot.acknowledged = true;
        }
        self.count_acknowledged(nodes, now);
    }

    /// Whether round two is decided.
    pub(super) fn count_acknowledged(&mut self, nodes: &mut Nodes, now: Moment) {
        let Round::Two { token, open } = self.round else { return };
        let acknowledged = self.ballots.iter().filter(|ballot| ballot.acknowledged).count();
        if acknowledged >= self.majority {
            self.hand_out(nodes, token);
        } else if acknowledged + open < self.majority {
            self.give_up(nodes, now);
        }
    }
}
