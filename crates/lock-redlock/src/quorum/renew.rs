//! Renew and fence: both repeat the second round, under the token that was handed out. Nodes that missed the token
//! learn it; nothing is created.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{BackendError, Effect, Fenced, FencingToken, Lease, Moment, Operation, Owner, Renewed};

use super::nodes::Nodes;
use super::outgoing::{NodeId, Outcome, Outgoing};
use super::trouble::Failures;

/// The renewal of some leases, by a majority of the nodes for each.
#[derive(Debug)]
pub(super) struct Renew {
    leases: Arc<[Lease]>,
    majority: usize,
    /// The nodes that are still expected to answer.
    open: BTreeSet<NodeId>,
    nodes: usize,
    counts: Vec<Count>,
    answered: usize,
    failures: Failures,
    verdict: Option<Result<Vec<Renewed>, BackendError>>,
}

/// The answers of the nodes for one lease.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    acknowledged: usize,
    refused: usize,
    higher: Option<FencingToken>,
}

impl Renew {
    /// Asks all voters.
    pub(super) fn begin(nodes: &mut Nodes, now: Moment, leases: Vec<Lease>, within: Duration) -> Self {
        let mut renew = Self {
            counts: vec![Count::default(); leases.len()],
            leases: leases.into_iter().map(|lease| nodes.raised(lease)).collect(),
            majority: nodes.majority(),
            open: BTreeSet::new(),
            nodes: nodes.all.len(),
            answered: 0,
            failures: nodes.failures(),
            verdict: None,
        };
        for voter in nodes.electorate(now) {
            let ask = Ask::Fence { leases: Arc::clone(&renew.leases), epoch: voter.epoch };
            nodes.send(voter.node, ask, within);
            renew.open.extend(voter.is_awaited.then_some(voter.node));
        }
        if let Some(objection) = nodes.objection(now, Operation::Renew) {
            renew.failures.push(objection);
        }
        renew.decide();
        renew
    }

    pub(super) fn heard(&mut self, sent: &Outgoing, outcome: Outcome) {
        if matches!(sent.ask, Ask::Fence { .. }) {
            self.count(sent.node, outcome);
        }
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
            // It has forgotten the lease, or may have.
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
        self.failures.error(operation, Effect::None, "too few nodes could confirm the lease or deny it")
    }

    fn is_settled(&self, count: Count) -> bool {
        count.acknowledged >= self.majority || self.is_lost(count) || self.open.is_empty()
    }

    /// So many nodes refused that the others are no majority.
    fn is_lost(&self, count: Count) -> bool {
        count.refused > self.nodes - self.majority
    }

    fn renewed(&self, lease: &Lease, count: Count) -> Renewed {
        if count.acknowledged >= self.majority {
            return Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false };
        }
        if self.is_lost(count) { Renewed::NotHeld } else { Renewed::Unsure(self.failure(Operation::Renew)) }
    }

    /// The owners that no majority can have any more.
    pub(super) fn denied(&self) -> impl Iterator<Item = Owner> + '_ {
        let denied = self.leases.iter().zip(&self.counts).filter(|(_, count)| self.is_lost(**count));
        denied.map(|(lease, _)| lease.owner)
    }

    /// The verdict of a renewal, as soon as it is certain.
    pub(super) fn take_renewed(&mut self) -> Option<Result<Vec<Renewed>, BackendError>> {
        self.verdict.take()
    }

    /// The verdict of a fence, as soon as it is certain.
    pub(super) fn take_fenced(&mut self) -> Option<Result<Fenced, BackendError>> {
        let verdict = self.verdict.take()?;
        let higher = self.counts.first().and_then(|count| count.higher);
        let failure = || self.failure(Operation::Fence);
        Some(verdict.map_err(|_| failure()).and_then(|answers| match answers.first() {
            Some(Renewed::Renewed { .. }) => Ok(Fenced::Acknowledged),
            Some(Renewed::NotHeld | Renewed::Revoked { .. }) => Ok(higher.map_or(Fenced::NotHeld, Fenced::Higher)),
            Some(Renewed::Unsure(_)) | None => Err(failure()),
        }))
    }
}
