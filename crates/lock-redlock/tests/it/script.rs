//! A quorum whose nodes answer as a test specifies.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, NodeTime, Record, RunId, Told, View};
use lock_core::{BackendError, Effect, ErrorKind, Fenced, FencingToken, Moment, Operation, Ttl};
use lock_redlock::HostEpochs;
use lock_redlock::quorum::{Outcome, Outgoing, Output, Purpose, Quorum, Report, Request, Verdict};

use crate::support::{MAX_TTL, WITHIN};

/// What each node's clock shows at first.
pub(crate) const CLOCK: u64 = 5_000_000;

pub(crate) struct Script {
    quorum: Quorum,
    pub(crate) now: Moment,
    pub(crate) views: Vec<View>,
    /// What each node has recorded about each other node.
    pub(crate) records: Vec<Vec<Option<Record>>>,
    /// The nodes that fail in a pass, and how.
    pub(crate) failing: BTreeMap<usize, ErrorKind>,
    /// The requests of the last pass, by node.
    pub(crate) steps: Vec<(usize, Ask)>,
    /// The requests without an outcome.
    pub(crate) sent: Vec<Outgoing>,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Script {
    pub(crate) fn new(count: usize) -> Self {
        let addresses: Vec<_> = (0..count).map(|index| format!("node-{index}")).collect();
        let membership = Membership::new(addresses.clone(), MAX_TTL);
        let view = |index: usize| View {
            run: RunId(format!("run-{index}")),
            state: NodeState::Voting(Epoch::from_random(u64::try_from(index).unwrap() + 1)),
            counter: 1,
            longest: Ttl::DEFAULT.get(),
            membership: Some(membership.clone()),
            marked_for: None,
            predecessor: None,
            has_voted: true,
            moves: 0,
            clock: NodeTime(CLOCK),
            evicts: None,
        };
        let quorum = Quorum::new(&addresses, Ttl::new(MAX_TTL).unwrap(), Box::new(HostEpochs)).unwrap();
        Self {
            quorum,
            now: Moment::ORIGIN,
            views: (0..count).map(view).collect(),
            records: vec![vec![None; count]; count],
            failing: BTreeMap::new(),
            steps: Vec::new(),
            sent: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// All nodes vote, and know of the usual ttl.
    pub(crate) fn voting(count: usize) -> Self {
        let mut script = Self::new(count);
        script.pass(Purpose::Watch).unwrap();
        script
    }

    pub(crate) fn begin(&mut self, request: Request) {
        self.begin_within(request, WITHIN);
    }

    pub(crate) fn begin_within(&mut self, request: Request, within: Duration) {
        self.quorum.begin(self.now, request, within);
        self.take_outputs();
    }

    pub(crate) fn send_held_back(&mut self) {
        _ = self.quorum.send_held_back(self.now, WITHIN);
        self.take_outputs();
    }

    /// A pass in which each node answers by its view and its records, and votes once it is installed.
    pub(crate) fn pass(&mut self, purpose: Purpose) -> Result<Report, BackendError> {
        self.slow_pass(purpose, Duration::ZERO)
    }

    /// The same, where the nodes take so long to answer the first look.
    pub(crate) fn slow_pass(&mut self, purpose: Purpose, takes: Duration) -> Result<Report, BackendError> {
        self.begin(Request::Pass(purpose));
        self.advance(takes);
        self.steps.clear();
        while !self.sent.is_empty() {
            let sent = self.sent.remove(0);
            self.steps.push((sent.node.0, sent.ask.clone()));
            let told = self.told(&sent);
            self.hear(sent, told);
        }
        let Some(Verdict::Pass(verdict)) = self.verdicts.pop() else { panic!("the pass has not ended") };
        verdict
    }

    fn told(&mut self, sent: &Outgoing) -> Outcome {
        let node = sent.node.0;
        if let Ask::Install { epoch, .. } = sent.ask {
            self.views[node].state = NodeState::Voting(epoch);
        }
        if let Some(kind) = self.failing.get(&node) {
            failure(*kind)
        } else if matches!(sent.ask, Ask::Record { .. }) {
            Ok(Told::Records(self.records[node].clone()))
        } else {
            Ok(Told::View(Box::new(self.views[node].clone())))
        }
    }

    /// The nodes that got this request in the last pass, in order.
    pub(crate) fn stepped(&self, is_it: fn(&Ask) -> bool) -> Vec<usize> {
        let mut nodes: Vec<_> = self.steps.iter().filter(|(_, ask)| is_it(ask)).map(|(node, _)| *node).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The node abstains.
    pub(crate) fn abstains(&mut self, node: usize) {
        self.views[node].state = NodeState::Abstaining { epoch: epoch_of(node), since: Duration::ZERO };
    }

    /// The node abstains, and this many nodes have recorded for how long.
    pub(crate) fn recorded(&mut self, node: usize, recording: usize, age: Duration) {
        self.abstains(node);
        self.records[..recording]
            .iter_mut()
            .for_each(|records| records[node] = Some(Record { epoch: epoch_of(node), age }));
    }

    /// The node knows no deployment.
    pub(crate) fn is_blank(&mut self, node: usize) {
        (self.views[node].membership, self.views[node].state) = (None, NodeState::Forgetful);
    }

    fn hear(&mut self, sent: Outgoing, outcome: Outcome) {
        self.quorum.heard(self.now, sent, outcome);
        self.take_outputs();
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.quorum.poll() {
            match output {
                Output::Send(sent) => self.sent.push(sent),
                Output::Done(_, verdict) => self.verdicts.push(verdict),
            }
        }
    }

    /// The outcome of the oldest request of this kind to a node.
    pub(crate) fn answer(&mut self, node: usize, is_it: fn(&Ask) -> bool, outcome: Outcome) {
        let sent = self.take(node, is_it);
        self.hear(sent, outcome);
    }

    /// Nobody will report the outcome of the oldest question of this kind to a node.
    pub(crate) fn forget(&mut self, node: usize, is_it: fn(&Ask) -> bool) {
        let sent = self.take(node, is_it);
        self.quorum.forget(self.now, sent);
        self.take_outputs();
    }

    fn take(&mut self, node: usize, is_it: fn(&Ask) -> bool) -> Outgoing {
        let found = self.sent.iter().position(|sent| sent.node.0 == node && is_it(&sent.ask));
        self.sent.remove(found.unwrap_or_else(|| panic!("node {node} was not asked: {:?}", self.sent)))
    }

    pub(crate) fn grant(&mut self, node: usize, token: u64) {
        let token = FencingToken::new(token).unwrap();
        self.answer(node, is_claim, Ok(Told::Granted { token, clock: NodeTime(CLOCK) }));
    }

    /// Round two, an announcement or a renewal.
    pub(crate) fn fence(&mut self, node: usize, answers: &[Fenced]) {
        self.answer(node, is_fence, Ok(Told::Fenced(answers.to_vec())));
    }

    /// The nodes with an open request of this kind.
    pub(crate) fn asked(&self, is_it: fn(&Ask) -> bool) -> Vec<usize> {
        self.sent.iter().filter(|sent| is_it(&sent.ask)).map(|sent| sent.node.0).collect()
    }

    pub(crate) fn advance(&mut self, time: Duration) {
        self.now = self.now + time;
    }
}

/// The epoch that begins when the node abstains no longer.
fn epoch_of(node: usize) -> Epoch {
    Epoch::from_random(u64::try_from(node).unwrap() + 70)
}

pub(crate) fn is_claim(ask: &Ask) -> bool {
    matches!(ask, Ask::Acquire { .. })
}

pub(crate) fn is_fence(ask: &Ask) -> bool {
    matches!(ask, Ask::Fence { .. })
}

pub(crate) fn is_release(ask: &Ask) -> bool {
    matches!(ask, Ask::Release(_))
}

pub(crate) fn is_look(ask: &Ask) -> bool {
    matches!(ask, Ask::Look)
}

pub(crate) fn is_mark(ask: &Ask) -> bool {
    matches!(ask, Ask::Mark { .. })
}

pub(crate) fn is_move(ask: &Ask) -> bool {
    matches!(ask, Ask::Move { .. })
}

pub(crate) fn is_install(ask: &Ask) -> bool {
    matches!(ask, Ask::Install { .. })
}

pub(crate) fn failure(kind: ErrorKind) -> Outcome {
    Err(BackendError::new("memory", Operation::Acquire, kind, Effect::None, "as the test says"))
}
