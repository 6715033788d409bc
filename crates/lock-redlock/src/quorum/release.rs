//! Release: at all nodes, also at those that abstain; later at those that do not answer.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{BackendError, Effect, Moment, Operation, Owner, ReleaseRequest, Released, Terms};

use super::nodes::Nodes;
use super::outgoing::{NodeId, Outcome, Outgoing};
use super::trouble::Failures;

/// The release of one owner.
#[derive(Debug)]
pub(super) struct Release {
    owner: Owner,
    nodes: usize,
    majority: usize,
    /// The nodes that have not answered.
    open: Vec<NodeId>,
    released: usize,
    absent: usize,
    failures: Failures,
    verdict: Option<Result<Released, BackendError>>,
}

impl Release {
    /// Sends the release to all nodes.
    pub(super) fn begin(nodes: &mut Nodes, now: Moment, request: ReleaseRequest, within: Duration) -> Self {
        let request = Arc::new(ReleaseRequest { terms: Terms { ttl: nodes.max_ttl, ..request.terms }, ..request });
        nodes.held.remove(&request.owner);
        let mut release = Self {
            owner: request.owner,
            nodes: nodes.all.len(),
            majority: nodes.majority(),
            open: nodes.ids().filter(|node| nodes.release(now, *node, &request, within)).collect(),
            released: 0,
            absent: 0,
            failures: nodes.failures(),
            verdict: None,
        };
        release.decide();
        release
    }

    pub(super) fn heard(&mut self, sent: &Outgoing, outcome: Outcome) {
        // A release that the node had not confirmed may belong to another owner.
        let ours = matches!(&sent.ask, Ask::Release(request) if request.owner == self.owner);
        if ours && let Some(place) = self.open.iter().position(|node| *node == sent.node) {
            self.open.swap_remove(place);
            self.count(outcome);
        }
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Ok(Told::Released(Released::Released)) => self.released += 1,
            Ok(_) => self.absent += 1,
            Err(error) => self.failures.push(error),
        }
        self.decide();
    }

    /// Once a majority has released it, the lock is free for others. If so many nodes did not hold it that no majority can
    /// have held it, it had been lost before.
    fn decide(&mut self) {
        let answered = self.released + self.absent;
        if answered >= self.majority {
            let lost = self.absent > self.nodes - self.majority;
            self.verdict = Some(Ok(if lost { Released::NotHeld } else { Released::Released }));
        } else if answered + self.open.len() < self.majority {
            let told = "too few nodes confirmed the release; the others get it later, or the lease expires there";
            self.verdict = Some(Err(self.failures.error(Operation::Release, Effect::Unknown, told)));
        }
    }

    /// The verdict, as soon as it is certain.
    pub(super) fn take_verdict(&mut self) -> Option<Result<Released, BackendError>> {
        self.verdict.take()
    }
}
