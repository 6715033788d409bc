//! Nodes in this process, and requests to all of them.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::Membership;
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Certainty, Claim, ErrorKind, Evidence, Fairness, Lease, NameKind,
    Note, Owner, Queueing, ReleaseRequest, Released, Terms, Ttl, Width,
};
use lock_host::ManualClock;
use lock_memory::faults::{Asked, Fault, Faults, Faulty};
use lock_memory::node::MemoryNode;
use lock_redlock::blocking::Redlock;
use lock_redlock::quorum::{Purpose, Report};

pub(crate) const WITHIN: Duration = Duration::from_secs(5);
pub(crate) const MAX_TTL: Duration = Duration::from_secs(60);
pub(crate) type Node = Faulty<MemoryNode>;

/// Several nodes, each with its own faults.
pub(crate) struct Rig {
    pub(crate) clock: ManualClock,
    pub(crate) nodes: Vec<MemoryNode>,
    pub(crate) faults: Vec<Faults>,
}

impl Rig {
    /// A rig of this many unused nodes.
    pub(crate) fn blank(count: usize) -> Self {
        let clock = ManualClock::new();
        // Node clocks begin some time after 1970, and tokens with them.
        clock.advance(Duration::from_secs(1_000_000));
        let node = |index| MemoryNode::new(format!("node-{index}"), Arc::new(clock.clone()));
        Self { nodes: (0..count).map(node).collect(), faults: (0..count).map(|_| Faults::new()).collect(), clock }
    }

    /// Three nodes, declared to be new, whose clocks are not the client's.
    pub(crate) fn on_clocks(clocks: &[ManualClock]) -> Self {
        let rig = Self::blank(clocks.len());
        let node = |(index, clock): (usize, &ManualClock)| {
            clock.advance(Duration::from_secs(1_000_000));
            MemoryNode::new(format!("node-{index}"), Arc::new(clock.clone()))
        };
        let rig = Self { nodes: clocks.iter().enumerate().map(node).collect(), ..rig };
        rig.client().pass(Purpose::Init, WITHIN).unwrap();
        rig
    }

    /// The same nodes, and this many unused ones.
    pub(crate) fn with_more(&self, count: usize) -> Self {
        let all = self.nodes.len()..self.nodes.len() + count;
        let node = |index| MemoryNode::new(format!("node-{index}"), Arc::new(self.clock.clone()));
        let nodes = self.nodes.iter().cloned().chain(all.map(node)).collect();
        let more = (0..count).map(|_| Faults::new());
        Self { nodes, faults: self.faults.iter().cloned().chain(more).collect(), clock: self.clock.clone() }
    }

    /// All nodes, as a deployment.
    pub(crate) fn membership(&self) -> Arc<Membership> {
        let members = (0..self.nodes.len()).map(|index| format!("node-{index}")).collect();
        Arc::new(Membership::new(members, MAX_TTL))
    }

    /// The same, declared to be new.
    pub(crate) fn founded(count: usize) -> Self {
        let rig = Self::blank(count);
        let report = rig.client().pass(Purpose::Init, WITHIN).unwrap();
        assert!(report.nodes.iter().all(|node| node.votes_in.is_none()), "{report:?}");
        rig
    }

    /// The same, after a client had a lock, so the ttl of these tests is announced. The recorded requests do not contain that.
    pub(crate) fn in_use(count: usize) -> Self {
        let rig = Self::founded(count);
        let client = rig.connected();
        release(&client, &granted(acquire(&client, &claim(250)))).unwrap();
        client.flush(WITHIN);
        drop(client);
        Self { faults: (0..count).map(|_| Faults::new()).collect(), ..rig }
    }

    /// The nodes that got this request.
    pub(crate) fn asked(&self, what: &Asked) -> Vec<usize> {
        let asked = |node: &usize| self.faults[*node].asked().contains(what);
        (0..self.nodes.len()).filter(asked).collect()
    }

    /// All other nodes fail.
    pub(crate) fn only(&self, node: usize) {
        let others = self.faults.iter().enumerate().filter(|(other, _)| *other != node);
        others.for_each(|(_, faults)| faults.fail_everything(Fault::Refused(ErrorKind::Unreachable)));
    }

    /// A client that knows nothing about the nodes yet.
    pub(crate) fn client(&self) -> Redlock<Node> {
        self.client_of(&(0..self.nodes.len()).collect::<Vec<_>>())
    }

    pub(crate) fn client_of(&self, nodes: &[usize]) -> Redlock<Node> {
        self.any_client(nodes, MAX_TTL)
    }

    pub(crate) fn client_allowing(&self, max_ttl: Duration) -> Redlock<Node> {
        self.any_client(&(0..self.nodes.len()).collect::<Vec<_>>(), max_ttl)
    }

    fn any_client(&self, nodes: &[usize], max_ttl: Duration) -> Redlock<Node> {
        let covered = |index: &usize| Faulty::new(self.nodes[*index].clone(), &self.faults[*index]);
        let nodes = nodes.iter().map(covered).collect();
        Redlock::on_clock(nodes, Ttl::new(max_ttl).unwrap(), Arc::new(self.clock.clone())).unwrap()
    }

    /// A client after its first pass.
    pub(crate) fn connected(&self) -> Redlock<Node> {
        let client = self.client();
        client.pass(Purpose::Watch, WITHIN).unwrap();
        client
    }
}

pub(crate) fn watch(client: &Redlock<Node>) -> Report {
    client.pass(Purpose::Watch, WITHIN).unwrap()
}

pub(crate) fn votes(report: &Report) -> Vec<bool> {
    report.nodes.iter().map(|node| node.view.as_ref().is_ok_and(lock_core::node::View::votes)).collect()
}

pub(crate) fn claim(owner: u8) -> Claim {
    Claim {
        name: "a".parse().unwrap(),
        owner: Owner::from_random([owner; 16]),
        terms: Terms::exclusive(Ttl::DEFAULT),
        width: Width::ONE,
        floor: None,
        note: Note::from_wire("1@here"),
        queueing: Queueing::Unwanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

pub(crate) fn acquire(client: &Redlock<Node>, claim: &Claim) -> Result<Answer, BackendError> {
    assert_eq!(client.capabilities().backend, "redlock");
    client.acquire(claim, WITHIN)
}

pub(crate) fn granted(answer: Result<Answer, BackendError>) -> Lease {
    match answer {
        Ok(Answer::Granted { lease, .. }) => lease,
        other => panic!("it was not granted: {other:?}"),
    }
}

pub(crate) fn release(client: &Redlock<Node>, lease: &Lease) -> Result<Released, BackendError> {
    let Lease { name, owner, terms, .. } = lease.clone();
    client.release(
        &ReleaseRequest { name, owner, terms, certainty: Certainty::Answered, keep: None, evidence: Evidence::Nothing },
        WITHIN,
    )
}

/// Waits until the nodes' threads have nothing left to do.
pub(crate) fn eventually(condition: impl Fn() -> bool) {
    let until = std::time::Instant::now() + WITHIN;
    while !condition() {
        assert!(std::time::Instant::now() < until, "it never came to that");
        std::thread::sleep(Duration::from_millis(1));
    }
}
