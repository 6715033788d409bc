//! Renewals, and the question whether a lease still stands: both are the second round again, under the token that was
//! handed out. So nodes that missed it learn it, and nothing is created.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{BackendError, Effect, ErrorKind, Fenced, Lease, Moment, Operation, Renewed};

use super::{Errand, Hope, Letter, NodeId, Outcome, Quorum};
use crate::BACKEND;

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
    error: Option<BackendError>,
    letters: VecDeque<Letter>,
    verdict: Option<Result<Vec<Renewed>, BackendError>>,
}

/// What the nodes said of one lease.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    acknowledged: usize,
    refused: usize,
}

impl Renew {
    /// Asks all voters.
    pub fn begin(quorum: &mut Quorum, now: Moment, leases: &[Lease], within: Duration) -> Self {
        let mut errand = Self {
            leases: leases.into(),
            majority: quorum.majority(),
            open: BTreeSet::new(),
            nodes: quorum.peers.len(),
            counts: vec![Count::default(); leases.len()],
            answered: 0,
            error: None,
            letters: VecDeque::new(),
            verdict: None,
        };
        for elector in quorum.electorate(now) {
            let ask = Ask::Fence { leases: Arc::clone(&errand.leases), epoch: elector.epoch };
            errand.letters.push_back(quorum.letter(elector.node, ask, within));
            errand.open.extend((elector.hope == Hope::Awaited).then_some(elector.node));
        }
        errand.error = quorum.objection(now, Operation::Renew);
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
                        Fenced::NotHeld | Fenced::Higher(_) => count.refused += 1,
                    }
                }
            }
            // It has forgotten the lease, or may not speak of it before that is over.
            Ok(Told::Abstains) => {
                self.answered += 1;
                self.counts.iter_mut().for_each(|count| count.refused += 1);
            }
            Ok(_) => self.error = Some(silence("a node answered something that was not asked")),
            Err(error) => self.error = Some(error),
        }
        self.decide();
    }

    fn decide(&mut self) {
        if self.verdict.is_some() || !self.counts.iter().all(|count| self.is_settled(*count)) {
            return;
        }
        self.verdict = Some(match &self.error {
            Some(error) if self.answered == 0 => Err(error.clone()),
            Some(_) | None => {
                let verdicts = self.leases.iter().zip(&self.counts);
                Ok(verdicts.map(|(lease, count)| self.renewed(lease, *count)).collect())
            }
        });
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
            return Renewed::Renewed { valid_for: lease.ttl.get() };
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
        Some(verdict.and_then(|answers| match answers.first() {
            Some(Renewed::Renewed { .. }) => Ok(Fenced::Acknowledged),
            Some(Renewed::NotHeld) => Ok(Fenced::NotHeld),
            Some(Renewed::Unsure) | None => Err(silence("too few nodes could say whether the lease still stands")),
        }))
    }
}

fn silence(told: &str) -> BackendError {
    BackendError::new(BACKEND, Operation::Fence, ErrorKind::Unavailable, Effect::Unknown, told)
}
