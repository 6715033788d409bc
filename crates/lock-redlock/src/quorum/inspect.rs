//! Inspection: one question to all nodes for an operator. Any node that is of this deployment answers, whether it votes or not: a lease that
//! it has keeps others out.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::node::{Ask, Inspection, Told};
use lock_core::{BackendError, Effect, Moment, Operation, Ttl};

use super::nodes::Nodes;
use super::outgoing::{NodeId, Outcome, Outgoing};
use super::trouble::Failures;

/// What the nodes answered.
#[derive(Debug)]
pub struct Answers {
    /// How many nodes are a majority.
    pub(crate) majority: usize,
    /// The longest ttl of the deployment.
    pub(crate) max_ttl: Ttl,
    /// For each node its address and its answer; `None` if it was not asked, or has not answered yet.
    pub(crate) nodes: Vec<(String, Option<Outcome>)>,
}

/// An inspection that is in flight.
#[derive(Debug)]
pub(super) struct Inspect {
    /// The nodes that are still expected to answer.
    open: BTreeSet<NodeId>,
    answers: Option<Answers>,
    verdict: Option<Result<Answers, BackendError>>,
}

impl Inspect {
    /// Asks each node what it is to be asked. A node that did not answer before is only probed while a majority is expected to answer.
    pub(super) fn begin(nodes: &mut Nodes, now: Moment, asks: Vec<Option<Inspection>>, within: Duration) -> Self {
        let unanswered = nodes.all.iter().map(|node| (node.address.clone(), None)).collect();
        let answers = Answers { majority: nodes.majority(), max_ttl: nodes.max_ttl, nodes: unanswered };
        let mut inspect = Self { open: BTreeSet::new(), answers: Some(answers), verdict: None };
        if let Some(refusal) = &nodes.watch.refusal {
            inspect.verdict = Some(Err(refusal.clone()));
            return inspect;
        }
        let trusted = nodes.all.iter().filter(|node| node.fault.is_none() && node.is_trusted()).count();
        let short = trusted < nodes.majority();
        for (id, ask) in nodes.ids().zip(asks) {
            let node = &mut nodes.all[id.0];
            // One that is of another deployment, or is counted already under another address, does not count.
            let Some(ask) = ask.filter(|_| node.fault.is_none() && (short || node.may_be_asked(now))) else { continue };
            inspect.open.extend((short || node.is_trusted()).then_some(id));
            nodes.send(id, Ask::Inspect(ask), within);
        }
        inspect.decide();
        inspect
    }

    pub(super) fn heard(&mut self, sent: &Outgoing, outcome: Outcome) {
        self.open.remove(&sent.node);
        if let Some(answers) = &mut self.answers {
            answers.nodes[sent.node.0].1 = Some(outcome);
        }
        self.decide();
    }

    fn decide(&mut self) {
        if self.open.is_empty() && self.verdict.is_none() {
            self.verdict = self.answers.take().map(Ok);
        }
    }

    /// The verdict, as soon as there is one.
    pub(super) fn take_verdict(&mut self) -> Option<Result<Answers, BackendError>> {
        self.verdict.take()
    }
}

impl Answers {
    /// The answers by node.
    pub(crate) fn told(&self) -> impl Iterator<Item = (NodeId, &Told)> {
        let told = self.nodes.iter().map(|(_, outcome)| outcome.as_ref()?.as_ref().ok());
        told.enumerate().filter_map(|(index, told)| Some((NodeId(index), told?)))
    }

    /// The answers, if a majority has answered.
    pub(crate) fn of_majority(self) -> Result<Self, BackendError> {
        let told =
            format!("{} of {} nodes answered, {} are needed", self.told().count(), self.nodes.len(), self.majority);
        if self.told().count() < self.majority { Err(self.error(Effect::None, &told)) } else { Ok(self) }
    }

    /// The error of all nodes that have not answered, by name.
    pub(crate) fn error(&self, others: Effect, told: &str) -> BackendError {
        let mut failures = Failures::new(self.nodes.len() - self.majority + 1);
        let silent = self.nodes.iter().filter(|(_, outcome)| !matches!(outcome, Some(Ok(_))));
        let addresses: Vec<_> = silent.clone().map(|(address, _)| address.as_str()).collect();
        let errors = silent.filter_map(|(_, outcome)| outcome.as_ref()?.as_ref().err());
        errors.for_each(|error| failures.push(error.clone()));
        let told = format!("{told}; not answering: {}", addresses.join(", "));
        failures.error(Operation::Inspect, others, &told)
    }
}
