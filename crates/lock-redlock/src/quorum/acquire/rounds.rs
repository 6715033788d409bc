//! The steps of a claim, and round one.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Moment, Operation, ReleaseRequest, Terms};

use super::super::node::NodeId;
use super::super::nodes::Nodes;
use super::super::outgoing::{Outcome, Outgoing};
use super::state::{Acquire, Ballot, Round, Vote, not_asked};
use crate::BACKEND;

/// Nodes that may yet draw the same token are waited for while so many are silent; of fewer, the one that is missing may
/// have stopped.
const SILENT_MIN: usize = 2;

impl Acquire {
    /// Asks all voters for grants. It may take `within` in all.
    pub(in super::super) fn begin(nodes: &mut Nodes, now: Moment, claim: Arc<Claim>, within: Duration) -> Self {
        let mut acquire = Self {
            wish: nodes.wishes.wish(now, claim.width),
            claim,
            within: within / 2,
            majority: nodes.majority(),
            ballots: Vec::new(),
            round: Round::One,
            announcement: None,
            failures: nodes.failures(),
            verdict: None,
        };
        let claim = &acquire.claim;
        if let Some(objection) = ttl_objection(nodes, claim).or_else(|| nodes.objection(now, Operation::Acquire)) {
            acquire.end(Err(objection));
        } else if claim.terms.ttl.get() > nodes.announced {
            acquire.within = within / 3;
            acquire.announce(nodes, now);
        } else {
            acquire.ask_all(nodes, now);
        }
        acquire
    }

    pub(in super::super) fn heard(&mut self, nodes: &mut Nodes, now: Moment, sent: &Outgoing, outcome: Outcome) {
        match &sent.ask {
            Ask::Acquire { .. } => self.vote(nodes, now, sent.node, outcome),
            Ask::Fence { leases, epoch } if self.is_announced_by(leases) => {
                self.count_told(nodes, now, (sent.node, *epoch), outcome);
            }
            Ask::Fence { .. } => self.acknowledge(nodes, now, sent.node, outcome),
            Ask::Release(_) | Ask::Look | Ask::Mark { .. } | Ask::Note { .. } => {}
            Ask::Install { .. } | Ask::Move { .. } => {}
        }
    }

    pub(super) fn ask_all(&mut self, nodes: &mut Nodes, now: Moment) {
        for voter in nodes.electorate(now) {
            let ask = Ask::Acquire { claim: Arc::clone(&self.claim), wish: self.wish, epoch: voter.epoch };
            nodes.send(voter.node, ask, self.within);
            self.ballots.push(Ballot { voter, vote: Vote::Asked, acknowledged: false });
        }
    }

    fn vote(&mut self, nodes: &mut Nodes, now: Moment, node: NodeId, outcome: Outcome) {
        let vote = match outcome {
            Ok(Told::Granted { token, .. }) => {
                if token > self.wish {
                    nodes.wishes.was_outbid(now, token);
                }
                nodes.raise(self.claim.owner, token);
                Vote::Granted(token)
            }
            Ok(Told::Held { holder, remaining }) => Vote::Held(holder, remaining),
            Ok(Told::Abstains) => Vote::Abstained,
            Ok(_) => Vote::Failed(not_asked()),
            Err(error) => Vote::Failed(error),
        };
        let Some(ballot) = self.ballots.iter_mut().find(|ballot| ballot.voter.node == node) else { return };
        ballot.vote = vote;
        match self.round {
            Round::One => self.count(nodes, now),
            Round::Two { token, .. } => {
                ballot.acknowledged |= ballot.drew(token);
                self.count_acknowledged(nodes, now);
            }
            Round::Zero | Round::Over => {}
        }
    }

    /// Whether round one is decided.
    fn count(&mut self, nodes: &mut Nodes, now: Moment) {
        let silent = self.ballots.iter().filter(|ballot| ballot.is_awaited()).count();
        let granted = self.grants().count();
        let (agreed, token) = self.agreed();
        if agreed >= self.majority {
            self.hand_out(nodes, token);
        } else if granted + silent < self.majority {
            // Whether the lock is held, or too many nodes are away, may not be clear yet.
            if silent == 0 || granted + self.held() >= self.majority {
                self.give_up(nodes, now);
            }
        } else if granted >= self.majority && (agreed + silent < self.majority || silent < SILENT_MIN) {
            self.begin_round_two(nodes, now);
        }
    }

    /// A majority cannot be had. What was granted, or still may be, is released everywhere.
    pub(super) fn give_up(&mut self, nodes: &mut Nodes, now: Moment) {
        let answer = self.refused(nodes);
        for ballot in &self.ballots {
            let certainty = match &ballot.vote {
                Vote::Granted(_) | Vote::Asked => Certainty::Answered,
                Vote::Failed(error) if error.effect() == Effect::Unknown => Certainty::Unknown,
                Vote::Failed(_) | Vote::Held(..) | Vote::Abstained => continue,
            };
            nodes.release(now, ballot.voter.node, &Arc::new(release_of(nodes, &self.claim, certainty)), self.within);
        }
        self.end(answer);
    }

    fn refused(&self, nodes: &Nodes) -> Result<Answer, BackendError> {
        if self.held() + self.grants().count() < self.majority {
            return Err(self.failure(nodes));
        }
        let mut held: Vec<_> = self.ballots.iter().filter_map(Ballot::held).collect();
        // So many of the nodes that are held have to become free.
        let missing = self.majority.saturating_sub(self.grants().count()).clamp(1, held.len().max(1));
        held.sort_by_key(|(_, remaining)| remaining.unwrap_or(Duration::MAX));
        match held.get(missing - 1) {
            Some((holder, remaining)) => Ok(Answer::Busy { remaining: *remaining, holder: (*holder).clone() }),
            None => Err(self.failure(nodes)),
        }
    }

    /// Nobody holds the lock, and yet it could not be had.
    fn failure(&self, nodes: &Nodes) -> BackendError {
        let mut failures = nodes.failures();
        self.ballots.iter().filter_map(Ballot::failure).for_each(|error| failures.push(error.clone()));
        let message = format!("not {} of {} nodes granted it and kept it", self.majority, nodes.all.len());
        // What is released again may still be under way.
        let touched = self.ballots.iter().any(|ballot| matches!(ballot.vote, Vote::Asked | Vote::Granted(_)));
        let others = if touched { Effect::Unknown } else { Effect::None };
        failures.error(Operation::Acquire, others, &message)
    }
}

/// What a node is told of a claim that is given up. A late one is refused for as long as any lease may last.
fn release_of(nodes: &Nodes, claim: &Claim, certainty: Certainty) -> ReleaseRequest {
    ReleaseRequest {
        name: claim.name.clone(),
        owner: claim.owner,
        terms: Terms { ttl: nodes.max_ttl, ..claim.terms },
        certainty,
    }
}

fn ttl_objection(nodes: &Nodes, claim: &Claim) -> Option<BackendError> {
    let most = nodes.max_ttl;
    (claim.terms.ttl > most).then(|| {
        let told = format!("a ttl of {} is longer than this deployment allows, which is {most}", claim.terms.ttl);
        BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Config, Effect::None, told)
            .with_remedy("use a shorter ttl: renewal keeps a lease longer than that")
    })
}
