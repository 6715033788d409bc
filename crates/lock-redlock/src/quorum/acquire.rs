//! Acquire: a token from each node in round one, the highest of them acknowledged by a majority in round two. Where a
//! majority drew the same token, as they do where nobody else was there with a higher one, round one was enough.
//!
//! A node acknowledges a token T only to the owner that holds there, and only if the grant's own f is not above T; then its
//! counter is at least T. Two majorities share a node, and there the later holder's f was drawn after that: it is above T,
//! and so is the later T. No clock, order or duplicate matters to that, while the shared node keeps its counter.

mod announce;
mod round_two;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, FencingToken, Lease, Moment, Operation, ReleaseRequest,
    Terms, TokenRange, Width,
};

use super::ballot::{Ballot, Vote};
use super::{Errand, Failures, Letter, NodeId, Outcome, Quorum};
use crate::BACKEND;
use announce::Announcement;

/// Nodes that may yet draw the same token are waited for while so many are silent; of fewer, the one that is missing may
/// have stopped.
const SILENT_MIN: usize = 2;

/// One claim, over all nodes.
#[derive(Debug)]
pub struct Acquire {
    claim: Arc<Claim>,
    wish: FencingToken,
    /// How long each round may take.
    within: Duration,
    majority: usize,
    ballots: Vec<Ballot>,
    round: Round,
    announcement: Option<Announcement>,
    failures: Failures,
    letters: VecDeque<Letter>,
    verdict: Option<Result<Answer, BackendError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// The ttl is announced.
    Zero,
    One,
    /// This token is to be acknowledged by so many nodes, of which these have not answered.
    Two {
        token: FencingToken,
        open: usize,
    },
    Over,
}

impl Acquire {
    /// Asks all voters for grants. It may take `within` in all.
    pub fn begin(quorum: &mut Quorum, now: Moment, claim: &Claim, within: Duration) -> Self {
        let mut errand = Self {
            claim: Arc::new(claim.clone()),
            wish: quorum.heights.wish(now, claim.width),
            within: within / 2,
            majority: quorum.majority(),
            ballots: Vec::new(),
            round: Round::One,
            announcement: None,
            failures: Failures::of(quorum),
            letters: VecDeque::new(),
            verdict: None,
        };
        if let Some(objection) = ttl_objection(quorum, claim).or_else(|| quorum.objection(now, Operation::Acquire)) {
            errand.end(Err(objection));
            return errand;
        }
        if claim.terms.ttl.get() > quorum.announced {
            errand.within = within / 3;
            errand.announce(quorum, now);
        } else {
            errand.ask_all(quorum, now);
        }
        errand
    }

    fn ask_all(&mut self, quorum: &mut Quorum, now: Moment) {
        for elector in quorum.electorate(now) {
            let ask = Ask::Acquire { claim: Arc::clone(&self.claim), wish: self.wish, epoch: elector.epoch };
            self.letters.push_back(quorum.letter(elector.node, ask, self.within));
            self.ballots.push(Ballot { elector, vote: Vote::Asked, acknowledged: false });
        }
    }

    fn vote(&mut self, quorum: &mut Quorum, now: Moment, node: NodeId, outcome: Outcome) {
        let vote = match outcome {
            Ok(Told::Granted { token, .. }) => {
                if token > self.wish {
                    quorum.heights.was_outbid(now, token);
                }
                quorum.raise(self.claim.owner, token);
                Vote::Granted(token)
            }
            Ok(Told::Held { holder, remaining }) => Vote::Held(holder, remaining),
            Ok(Told::Abstains) => Vote::Abstained,
            Ok(_) => Vote::Failed(out_of_turn()),
            Err(error) => Vote::Failed(error),
        };
        let Some(ballot) = self.ballots.iter_mut().find(|ballot| ballot.elector.node == node) else { return };
        ballot.vote = vote;
        match self.round {
            Round::One => self.count(quorum, now),
            Round::Two { token, .. } => {
                ballot.acknowledged |= ballot.drew(token);
                self.count_acknowledged(quorum, now);
            }
            Round::Zero | Round::Over => {}
        }
    }

    /// Whether round one is decided.
    fn count(&mut self, quorum: &mut Quorum, now: Moment) {
        let silent = self.ballots.iter().filter(|ballot| ballot.is_awaited()).count();
        let granted = self.grants().count();
        let (agreed, token) = self.agreed();
        if agreed >= self.majority {
            self.hand_out(quorum, token);
        } else if granted + silent < self.majority {
            // Whether somebody holds it, or too many are away, may not be clear yet.
            if silent == 0 || granted + self.held() >= self.majority {
                self.give_up(quorum, now);
            }
        } else if granted >= self.majority && (agreed + silent < self.majority || silent < SILENT_MIN) {
            self.begin_round_two(quorum, now);
        }
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

    /// The lock is had, with this token. Nodes that drew a higher one are renewed under that.
    fn hand_out(&mut self, quorum: &mut Quorum, token: FencingToken) {
        let highest = self.grants().max().unwrap_or(token).max(token);
        quorum.keep(self.claim.owner, highest);
        let valid_for = self.claim.terms.ttl.get();
        self.end(self.lease(token).map(|lease| Answer::Granted { lease, valid_for }));
    }

    fn lease(&self, high: FencingToken) -> Result<Lease, BackendError> {
        let width = self.claim.width;
        self.lease_of(high.get().saturating_sub(width.get()), width)
    }

    fn lease_of(&self, last: u64, width: Width) -> Result<Lease, BackendError> {
        let Claim { name, owner, terms, .. } = &*self.claim;
        let tokens = TokenRange::above(last, width).map_err(|_| out_of_turn())?;
        Ok(Lease { name: name.clone(), owner: *owner, tokens, terms: *terms })
    }

    /// A majority cannot be had. What was granted, or still may be, is released everywhere.
    fn give_up(&mut self, quorum: &mut Quorum, now: Moment) {
        let answer = self.refused(quorum);
        for ballot in &self.ballots {
            let certainty = match &ballot.vote {
                Vote::Granted(_) | Vote::Asked => Certainty::Answered,
                Vote::Failed(error) if error.effect() == Effect::Unknown => Certainty::Unknown,
                Vote::Failed(_) | Vote::Held(..) | Vote::Abstained => continue,
            };
            let request = Arc::new(release_of(quorum, &self.claim, certainty));
            self.letters.extend(quorum.release(now, ballot.elector.node, &request, self.within));
        }
        self.end(answer);
    }

    fn refused(&self, quorum: &Quorum) -> Result<Answer, BackendError> {
        if self.held() + self.grants().count() < self.majority {
            return Err(self.failure(quorum));
        }
        let mut held: Vec<_> = self.ballots.iter().filter_map(Ballot::held).collect();
        // So many of the nodes that are held have to become free.
        let missing = self.majority.saturating_sub(self.grants().count()).clamp(1, held.len().max(1));
        held.sort_by_key(|(_, remaining)| remaining.unwrap_or(Duration::MAX));
        match held.get(missing - 1) {
            Some((holder, remaining)) => Ok(Answer::Busy { remaining: *remaining, holder: (*holder).clone() }),
            None => Err(self.failure(quorum)),
        }
    }

    /// Nobody holds the lock, and yet it could not be had.
    fn failure(&self, quorum: &Quorum) -> BackendError {
        let mut failures = Failures::of(quorum);
        self.ballots.iter().filter_map(Ballot::failure).for_each(|error| failures.push(error.clone()));
        let message = format!("not {} of {} nodes granted it and kept it", self.majority, quorum.peers.len());
        // What is released again may still be under way.
        let touched = self.ballots.iter().any(|ballot| matches!(ballot.vote, Vote::Asked | Vote::Granted(_)));
        let others = if touched { Effect::Unknown } else { Effect::None };
        failures.error(Operation::Acquire, others, &message)
    }

    fn end(&mut self, verdict: Result<Answer, BackendError>) {
        self.round = Round::Over;
        self.verdict = Some(verdict);
    }
}

impl Errand for Acquire {
    type Verdict = Result<Answer, BackendError>;

    fn next_letter(&mut self) -> Option<Letter> {
        self.letters.pop_front()
    }

    fn heard(&mut self, quorum: &mut Quorum, now: Moment, letter: &Letter, outcome: Outcome) {
        let owed = quorum.settle(now, letter, &outcome);
        self.letters.extend(owed);
        match &letter.ask {
            Ask::Acquire { .. } => self.vote(quorum, now, letter.node, outcome),
            Ask::Fence { leases, epoch } if self.is_announced_by(leases) => {
                self.count_told(quorum, now, (letter.node, *epoch), outcome);
            }
            Ask::Fence { .. } => self.acknowledge(quorum, now, letter.node, outcome),
            Ask::Release(_)
            | Ask::Look
            | Ask::Mark { .. }
            | Ask::Note { .. }
            | Ask::Install { .. }
            | Ask::Move { .. } => {}
        }
    }

    fn take_verdict(&mut self) -> Option<Self::Verdict> {
        self.verdict.take()
    }
}

/// What a node is told of a claim that is given up. A late one is refused for as long as any lease may last.
fn release_of(quorum: &Quorum, claim: &Claim, certainty: Certainty) -> ReleaseRequest {
    ReleaseRequest {
        name: claim.name.clone(),
        owner: claim.owner,
        terms: Terms { ttl: quorum.max_ttl(), ..claim.terms },
        certainty,
    }
}

fn ttl_objection(quorum: &Quorum, claim: &Claim) -> Option<BackendError> {
    let most = quorum.max_ttl();
    (claim.terms.ttl > most).then(|| {
        let told = format!("a ttl of {} is longer than this deployment allows, which is {most}", claim.terms.ttl);
        BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Config, Effect::None, told)
            .with_remedy("use a shorter ttl: renewal keeps a lease longer than that")
    })
}

fn out_of_turn() -> BackendError {
    let told = "a node answered something that was not asked";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, told)
}
