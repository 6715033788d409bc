//! Acquire: each node draws a token in round one, and a majority acknowledges the highest of them in round two. If a
//! majority drew the same token, round one is enough. That is the usual case, unless another client just asked for a
//! higher one.
//!
//! A node acknowledges a token T only to the owner that holds there, and only if the grant's own f is not above T; then its
//! counter is at least T. Two majorities share a node, and there the later holder's f was drawn after that: it is above T,
//! and so is the later T. No clock, order or duplicate can change that while the shared node keeps its counter.

mod announce;
mod ballot;
mod round_two;

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Told};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Evidence, FencingToken, Lease, Moment, Operation,
    ReleaseRequest, Terms, TokenRange, Width,
};

use super::nodes::Nodes;
use super::outgoing::{NodeId, Outcome, Outgoing};
use super::rule::Rule;
use super::trouble::Failures;
use crate::BACKEND;
use ballot::{Ballot, Vote};

/// While at least this many nodes are silent, the claim waits for them to draw the same token. A single silent node may
/// have stopped.
const SILENT_MIN: usize = 2;

/// One claim, over all nodes.
#[derive(Debug)]
pub(super) struct Acquire {
    claim: Arc<Claim>,
    wish: FencingToken,
    /// How long each round may take.
    within: Duration,
    majority: usize,
    ballots: Vec<Ballot>,
    round: Round,
    announcement: Option<Announcement>,
    failures: Failures,
    verdict: Option<Result<Answer, BackendError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// The ttl is announced.
    Zero,
    One,
    /// This token has to be acknowledged; this many of the nodes that were asked have not answered.
    Two {
        token: FencingToken,
        open: usize,
    },
    Over,
}

#[derive(Debug)]
struct Announcement {
    leases: Arc<[Lease]>,
    begun: Moment,
    /// The nodes that know of it, and in which epoch.
    told: Vec<(NodeId, Epoch)>,
    /// How many others have not answered.
    open: usize,
}

impl Acquire {
    /// Asks all voters for grants. This may take `within` in total.
    pub(super) fn begin(nodes: &mut Nodes, now: Moment, claim: Arc<Claim>, within: Duration) -> Self {
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
        } else if claim.terms.ttl.get() > nodes.announced && nodes.rules.keep(Rule::Announcement) {
            acquire.within = within / 3;
            acquire.announce(nodes, now);
        } else {
            acquire.ask_all(nodes, now);
        }
        acquire
    }

    pub(super) fn heard(&mut self, nodes: &mut Nodes, now: Moment, sent: &Outgoing, outcome: Outcome) {
        match &sent.ask {
            Ask::Acquire { .. } => self.vote(nodes, now, sent.node, outcome),
            Ask::Fence { leases, epoch } if self.is_announced_by(leases) => {
                self.count_told(nodes, now, (sent.node, *epoch), outcome);
            }
            Ask::Fence { .. } => self.acknowledge(nodes, now, sent.node, outcome),
            Ask::Release(_) | Ask::Look | Ask::Mark { .. } | Ask::Record { .. } => {}
            Ask::Install { .. } | Ask::Move { .. } | Ask::Inspect(_) => {}
        }
    }

    fn ask_all(&mut self, nodes: &mut Nodes, now: Moment) {
        for voter in nodes.electorate(now) {
            nodes.claim(now, voter, (&self.claim, self.wish), self.within);
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
            // It may not be clear yet whether the lock is held or too many nodes are unreachable.
            if silent == 0 || granted + self.held() >= self.majority {
                self.give_up(nodes, now);
            }
        } else if granted >= self.majority && (agreed + silent < self.majority || silent < SILENT_MIN) {
            self.begin_round_two(nodes, now);
        }
    }

    /// There will be no majority. Grants, and claims that may still be granted, are released everywhere.
    fn give_up(&mut self, nodes: &mut Nodes, now: Moment) {
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
        // How many of the nodes where it is held must become free.
        let missing = self.majority.saturating_sub(self.grants().count()).clamp(1, held.len().max(1));
        held.sort_by_key(|(_, remaining)| remaining.unwrap_or(Duration::MAX));
        match held.get(missing - 1) {
            Some((holder, remaining)) => {
                Ok(Answer::Busy { remaining: *remaining, holder: (*holder).clone(), drawn: None })
            }
            None => Err(self.failure(nodes)),
        }
    }

    /// Nobody holds the lock, but it was not granted either.
    fn failure(&self, nodes: &Nodes) -> BackendError {
        let mut failures = nodes.failures();
        self.ballots.iter().filter_map(Ballot::failure).for_each(|error| failures.push(error.clone()));
        let message = format!("fewer than {} of {} nodes granted it and kept it", self.majority, nodes.all.len());
        // A release that was just sent may still be in flight.
        let touched = self.ballots.iter().any(|ballot| matches!(ballot.vote, Vote::Asked | Vote::Granted(_)));
        let others = if touched { Effect::Unknown } else { Effect::None };
        failures.error(Operation::Acquire, others, &message)
    }

    /// The token that the most nodes drew, and how many did.
    fn agreed(&self) -> (usize, FencingToken) {
        let same = |token: FencingToken| (self.grants().filter(|f| *f == token).count(), token);
        self.grants().map(same).max().unwrap_or((0, self.wish))
    }

    fn held(&self) -> usize {
        self.ballots.iter().filter(|ballot| ballot.held().is_some()).count()
    }

    fn grants(&self) -> impl Iterator<Item = FencingToken> + '_ {
        self.ballots.iter().filter_map(|ballot| match ballot.vote {
            Vote::Granted(token) => Some(token),
            Vote::Asked | Vote::Held(..) | Vote::Failed(_) | Vote::Abstained => None,
        })
    }

    /// The lock is acquired with this token. Nodes that drew a higher one are renewed under that.
    fn hand_out(&mut self, nodes: &mut Nodes, token: FencingToken) {
        let highest = self.grants().max().unwrap_or(token).max(token);
        nodes.held.insert(self.claim.owner, highest);
        let valid_for = self.claim.terms.ttl.get();
        self.end(self.lease(token).map(|lease| Answer::Granted { lease, valid_for, wanted: false }));
    }

    fn lease(&self, high: FencingToken) -> Result<Lease, BackendError> {
        let width = self.claim.width;
        self.lease_of(high.get().saturating_sub(width.get()), width)
    }

    fn lease_of(&self, last: u64, width: Width) -> Result<Lease, BackendError> {
        let tokens = TokenRange::above(last, width).map_err(|_| not_asked())?;
        Ok(self.claim.lease(tokens))
    }

    fn end(&mut self, verdict: Result<Answer, BackendError>) {
        self.round = Round::Over;
        self.verdict = Some(verdict);
    }

    /// The verdict, as soon as it is certain.
    pub(super) fn take_verdict(&mut self) -> Option<Result<Answer, BackendError>> {
        self.verdict.take()
    }
}

/// Ends a claim that is given up. If the claim arrives late, it is refused for as long as any lease may last.
fn release_of(nodes: &Nodes, claim: &Claim, certainty: Certainty) -> ReleaseRequest {
    ReleaseRequest {
        name: claim.name.clone(),
        owner: claim.owner,
        terms: Terms { ttl: nodes.max_ttl, ..claim.terms },
        certainty,
        keep: None,
        evidence: Evidence::Nothing,
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

fn not_asked() -> BackendError {
    let told = "a node's answer does not fit the request";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, told)
}
