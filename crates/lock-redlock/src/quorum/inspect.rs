//! Inspection: one question to all nodes for an operator. Any node that is of this deployment answers, whether it votes or not: a lease that
//! it has keeps others out.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::node::{Ask, Inspection, Told};
use lock_core::{BackendError, Effect, Moment, Operation, Ttl};

use super::node::Node;
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
    /// The nodes that abstain, according to the last recovery pass: what they do not have, they may have forgotten.
    pub(crate) abstaining: BTreeSet<NodeId>,
    /// For each node its address, and what came of asking it.
    pub(crate) nodes: Vec<(String, Heard)>,
}

/// What came of asking a node.
#[derive(Debug)]
pub(crate) enum Heard {
    /// There is nothing to ask it.
    NotAsked,
    /// It does not count, according to the last recovery pass.
    Excluded(BackendError),
    /// It has not answered yet, or is not asked because it did not answer before.
    Silent,
    Outcome(Outcome),
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
        let unanswered = nodes.all.iter().zip(&asks).map(|(node, ask)| (node.address.clone(), not_heard(node, ask)));
        let unanswered = unanswered.collect();
        let abstaining = nodes.ids().filter(|id| nodes.all[id.0].epoch.is_none()).collect();
        let answers = Answers { majority: nodes.majority(), max_ttl: nodes.max_ttl, abstaining, nodes: unanswered };
        let mut inspect = Self { open: BTreeSet::new(), answers: Some(answers), verdict: None };
        if let Some(refusal) = &nodes.watch.refusal {
            inspect.verdict = Some(Err(refusal.clone()));
            return inspect;
        }
        let trusted = nodes.all.iter().filter(|node| node.fault.is_none() && node.is_trusted()).count();
        let short = trusted < nodes.majority();
        for (id, ask) in nodes.ids().zip(asks) {
            let node = &mut nodes.all[id.0];
            let Some(ask) = ask.filter(|_| node.fault.is_none()) else { continue };
            // What is to end a lease is worth a try at every node.
            if !(short || node.may_be_asked(now) || matches!(ask, Inspection::Revoke(_))) {
                continue;
            }
            inspect.open.extend((short || node.is_trusted()).then_some(id));
            nodes.send(id, Ask::Inspect(ask), within);
        }
        inspect.decide();
        inspect
    }

    pub(super) fn heard(&mut self, sent: &Outgoing, outcome: Outcome) {
        // A release that the node had not confirmed says nothing about what was asked.
        if !matches!(sent.ask, Ask::Inspect(_)) {
            return;
        }
        self.open.remove(&sent.node);
        if let Some(answers) = &mut self.answers {
            answers.nodes[sent.node.0].1 = Heard::Outcome(outcome);
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

fn not_heard(node: &Node, ask: &Option<Inspection>) -> Heard {
    match (ask, &node.fault) {
        (None, _) => Heard::NotAsked,
        // It is of another deployment, or counts under another address.
        (Some(_), Some(fault)) => Heard::Excluded(fault.clone()),
        (Some(_), None) => Heard::Silent,
    }
}

impl Heard {
    fn told(&self) -> Option<&Told> {
        match self {
            Self::Outcome(outcome) => outcome.as_ref().ok(),
            Self::NotAsked | Self::Excluded(_) | Self::Silent => None,
        }
    }

    /// Whether it was to answer and did not.
    fn is_silence(&self) -> bool {
        matches!(self, Self::Silent | Self::Outcome(Err(_)))
    }

    fn error(&self) -> Option<&BackendError> {
        match self {
            Self::Excluded(error) | Self::Outcome(Err(error)) => Some(error),
            Self::NotAsked | Self::Silent | Self::Outcome(Ok(_)) => None,
        }
    }
}

impl Answers {
    /// The answers by node.
    pub(crate) fn told(&self) -> impl Iterator<Item = (NodeId, &Told)> {
        let told = self.nodes.iter().map(|(_, heard)| heard.told());
        told.enumerate().filter_map(|(index, told)| Some((NodeId(index), told?)))
    }

    /// The answers, if a majority has answered.
    pub(crate) fn of_majority(self) -> Result<Self, BackendError> {
        let told =
            format!("{} of {} nodes answered, {} are needed", self.told().count(), self.nodes.len(), self.majority);
        if self.told().count() < self.majority { Err(self.error(Effect::None, &told)) } else { Ok(self) }
    }

    /// The error of all nodes that have not answered, by name. The effect is that of what they were asked: to inspect a node has none, even
    /// if the answer is lost.
    pub(crate) fn error(&self, effect: Effect, told: &str) -> BackendError {
        let mut failures = Failures::new(self.nodes.len() - self.majority + 1);
        let silent = self.nodes.iter().filter(|(_, heard)| heard.is_silence());
        let addresses: Vec<_> = silent.map(|(address, _)| address.as_str()).collect();
        self.nodes.iter().filter_map(|(_, heard)| heard.error()).for_each(|error| failures.push(error.clone()));
        let silent =
            if addresses.is_empty() { String::new() } else { format!("; not answering: {}", addresses.join(", ")) };
        failures.error_of_effect(Operation::Inspect, effect, &format!("{told}{silent}"))
    }
}
