//! Renewals, and the question whether a lease still stands: both are the second round again, under the token that was
//! handed out. So nodes that missed it learn it, and nothing is created.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{BackendError, Effect, Fenced, FencingToken, Lease, Moment, Operation, Renewed};

use super::{Errand, Failures, Hope, Letter, NodeId, Outcome, Quorum};

/// The renewal of some leases, by a majority of the nodes for each.
#[derive(Debug)]
pub struct Renew {
    leases: Arc<[Lease]>,
    majority: usize,
    /// Who is expected to answer yet.
    open: BTreeSet<NodeId>,
    nodes: usize,
    counts: Vec<Count>,
    answered: usize,
    failures: Failures,
    letters: VecDeque<Letter>,
    verdict: Option<Result<Vec<Renewed>, BackendError>>,
}

/// What the nodes said of one lease.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    acknowledged: usize,
    refused: usize,
    higher: Option<FencingToken>,
}

impl Renew {
    /// Asks all voters.
    pub fn begin(quorum: &mut Quorum, now: Moment, leases: &[Lease], within: Duration) -> Self {
        let mut errand = Self {
            leases: leases.iter().map(|lease| quorum.raised(lease)).collect(),
            majority: quorum.majority(),
            open: BTreeSet::new(),
            nodes: quorum.peers.len(),
            counts: vec![Count::default(); leases.len()],
            answered: 0,
            failures: Failures::of(quorum),
            letters: VecDeque::new(),
            verdict: None,
        };
        for elector in quorum.electorate(now) {
            let ask = Ask::Fence { leases: Arc::clone(&errand.leases), epoch: elector.epoch };
            errand.letters.push_back(quorum.letter(elector.node, ask, within));
            errand.open.extend((elector.hope == Hope::Awaited).then_some(elector.node));
        }
        errand.failures.errors.extend(quorum.objection(now, Operation::Renew));
        errand.decide();
        errand
    }

    fn count(&mut self, node: NodeId, outcome: Outcome) {
        self.open.remove(&node);
        match outcome {
            Ok(Told::Fenced(answers)) if answers.len() == self.counts.len() => {
                self.answered += 1;
                for (count, answer) in self.counts.iter_mut().zip(answers) {
                    match answer {
                        Fenced::Acknowledged => count.acknowledged += 1,
                        Fenced::NotHeld => count.refused += 1,
                        Fenced::Higher(token) => {
                            count.refused += 1;
                            count.higher = count.higher.max(Some(token));
                        }
                    }
                }
            }
            // It has forgotten the lease, or may not speak of it before that is over.
            Ok(Told::Abstains) => {
                self.answered += 1;
                self.counts.iter_mut().for_each(|count| count.refused += 1);
            }
            Ok(_) => {}
            Err(error) => self.failures.push(error),
        }
        self.decide();
    }

    fn decide(&mut self) {
        if self.verdict.is_some() || !self.counts.iter().all(|count| self.is_settled(*count)) {
            return;
        }
        self.verdict = Some(if self.answered == 0 && !self.leases.is_empty() {
            Err(self.failure(Operation::Renew))
        } else {
            Ok(self.leases.iter().zip(&self.counts).map(|(lease, count)| self.renewed(lease, *count)).collect())
        });
    }

    fn failure(&self, operation: Operation) -> BackendError {
        self.failures.error(operation, Effect::None, "too few nodes could say whether the lease stands")
    }

    fn is_settled(&self, count: Count) -> bool {
        count.acknowledged >= self.majority || self.is_lost(count) || self.open.is_empty()
    }

    /// So many refusals leave no majority, whatever the others would say.
    fn is_lost(&self, count: Count) -> bool {
        count.refused > self.nodes - self.majority
    }

    fn renewed(&self, lease: &Lease, count: Count) -> Renewed {
        if count.acknowledged >= self.majority {
            return Renewed::Renewed { valid_for: lease.terms.ttl.get() };
        }
        if self.is_lost(count) { Renewed::NotHeld } else { Renewed::Unsure }
    }
}

impl Errand for Renew {
    type Verdict = Result<Vec<Renewed>, BackendError>;

    fn next_letter(&mut self) -> Option<Letter> {
        self.letters.pop_front()
    }

    fn heard(&mut self, quorum: &mut Quorum, now: Moment, letter: &Letter, outcome: Outcome) {
        let owed = quorum.settle(now, letter, &outcome);
        self.letters.extend(owed);
        if matches!(letter.ask, Ask::Fence { .. }) {
            self.count(letter.node, outcome);
        }
    }

    fn take_verdict(&mut self) -> Option<Self::Verdict> {
        self.verdict.take()
    }
}

/// The question whether one lease still stands.
#[derive(Debug)]
pub struct Verify(Renew);

impl Verify {
    /// Asks all voters.
    pub fn begin(quorum: &mut Quorum, now: Moment, lease: &Lease, within: Duration) -> Self {
        Self(Renew::begin(quorum, now, std::slice::from_ref(lease), within))
    }
}

impl Errand for Verify {
    type Verdict = Result<Fenced, BackendError>;

    fn next_letter(&mut self) -> Option<Letter> {
        self.0.next_letter()
    }

    fn heard(&mut self, quorum: &mut Quorum, now: Moment, letter: &Letter, outcome: Outcome) {
        self.0.heard(quorum, now, letter, outcome);
    }

    fn take_verdict(&mut self) -> Option<Self::Verdict> {
        let verdict = self.0.take_verdict()?;
        let higher = self.0.counts.first().and_then(|count| count.higher);
        let failure = || self.0.failure(Operation::Fence);
        Some(verdict.map_err(|_| failure()).and_then(|answers| match answers.first() {
            Some(Renewed::Renewed { .. }) => Ok(Fenced::Acknowledged),
            Some(Renewed::NotHeld) => Ok(higher.map_or(Fenced::NotHeld, Fenced::Higher)),
            Some(Renewed::Unsure) | None => Err(failure()),
        }))
    }
}
