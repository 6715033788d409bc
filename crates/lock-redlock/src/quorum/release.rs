//! Release: on all nodes, also those that abstain, and later on those that do not answer.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{BackendError, Effect, Moment, Operation, Owner, ReleaseRequest, Released, Terms};

use super::{Errand, Failures, Letter, NodeId, Outcome, Quorum};

/// The release of one owner.
#[derive(Debug)]
pub struct Release {
    owner: Owner,
    nodes: usize,
    majority: usize,
    /// Who has not answered.
    open: BTreeSet<NodeId>,
    released: usize,
    absent: usize,
    failures: Failures,
    letters: VecDeque<Letter>,
    verdict: Option<Result<Released, BackendError>>,
}

impl Release {
    /// Tells all nodes.
    pub fn begin(quorum: &mut Quorum, now: Moment, request: &ReleaseRequest, within: Duration) -> Self {
        let request =
            Arc::new(ReleaseRequest { terms: Terms { ttl: quorum.max_ttl(), ..request.terms }, ..request.clone() });
        let mut errand = Self {
            owner: request.owner,
            nodes: quorum.peers.len(),
            majority: quorum.majority(),
            open: BTreeSet::new(),
            released: 0,
            absent: 0,
            failures: Failures::of(quorum),
            letters: VecDeque::new(),
            verdict: None,
        };
        quorum.held.remove(&request.owner);
        for node in quorum.nodes() {
            errand.letters.extend(quorum.release(now, node, &request, within));
        }
        errand.open = errand.letters.iter().map(|letter| letter.node).collect();
        errand.decide();
        errand
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Ok(Told::Released(Released::Released)) => self.released += 1,
            Ok(_) => self.absent += 1,
            Err(error) => self.failures.push(error),
        }
        if self.verdict.is_none() {
            self.decide();
        }
    }

    /// Once a majority holds nothing of it any more, the lock is free for others. It was lost before if so many had
    /// nothing of it that no majority can have held it.
    fn decide(&mut self) {
        let answered = self.released + self.absent;
        if answered >= self.majority {
            let lost = self.absent > self.nodes - self.majority;
            self.verdict = Some(Ok(if lost { Released::NotHeld } else { Released::Released }));
        } else if answered + self.open.len() < self.majority {
            let told = "too few nodes could be told; the others are told later, or the lease runs out";
            self.verdict = Some(Err(self.failures.error(Operation::Release, Effect::Unknown, told)));
        }
    }
}

impl Errand for Release {
    type Verdict = Result<Released, BackendError>;

    fn next_letter(&mut self) -> Option<Letter> {
        self.letters.pop_front()
    }

    fn heard(&mut self, quorum: &mut Quorum, now: Moment, letter: &Letter, outcome: Outcome) {
        let owed = quorum.settle(now, letter, &outcome);
        self.letters.extend(owed);
        // What a node was owed may be another owner's.
        let ours = matches!(&letter.ask, Ask::Release(request) if request.owner == self.owner);
        if ours && self.open.remove(&letter.node) {
            self.count(outcome);
        }
    }

    fn take_verdict(&mut self) -> Option<Self::Verdict> {
        self.verdict.take()
    }
}
