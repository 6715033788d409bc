//! Faults of the nodes, and of the network between them and the workers.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use stress::cast::{COOL, HOT, TTL};
use stress::crew::{Crew, Link};
use stress::storm::{self, Blow, Lingering, Nemesis as _, Storm, Wire, victim};
use test_support::Fault;

use crate::nodes::{MINORITY, NODES, Nodes};

/// The pause between two faults.
const PAUSES: Range<Duration> = Duration::from_millis(100)..Duration::from_millis(500);
/// How long a loss is delayed until enough nodes vote.
const PUT_OFF_MAX: Duration = Duration::from_secs(4);
/// How long a node is suspended briefly: less than clients wait for it.
const BRIEFLY: Range<Duration> = Duration::from_millis(20)..Duration::from_millis(70);
/// How long it is suspended or away otherwise: up to more than a lease lasts.
const LONG: Range<Duration> = Duration::from_millis(300)..Duration::from_millis(1500);

/// Raises the counter of a node that votes.
const LEAP: &str = "if redis.call('HEXISTS', KEYS[1], 'seal') == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'fence', ARGV[1]) return 1";
/// By much more than its clock runs meanwhile.
const LEAP_MICROS: &str = "60000000";

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    Worker(Blow),
    Cut(Reach),
    Network(Wire, Reach),
    /// Two workers, each cut from another minority.
    SplitMinorities,
    FlushScripts,
    KillClients,
    KillSubscribers,
    /// A node's counter jumps far ahead, as if its clock had been wrong.
    LeapAhead,
    FreezeNodeBriefly,
    FreezeNode,
    FreezeMinority,
    RestartWithData,
    RestartEmpty,
    FlushAll,
    /// A minority is killed, and comes back with its data after a while.
    MinorityGone,
    /// A minority forgets at once.
    MinorityForgets,
}

/// Whose network is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// One worker's, to all nodes.
    Worker,
    /// One node's, to all workers.
    Node,
    /// That between one worker and one node.
    Link,
}

const REACHES: [Reach; 3] = [Reach::Worker, Reach::Node, Reach::Link];
const WIRES: [Wire; 4] = [Wire::DropReplies, Wire::CutAtReply, Wire::Hold, Wire::Refuse];

/// Every kind.
pub(crate) fn troubles() -> Vec<Trouble> {
    let blows = [Blow::Kill, Blow::FreezeBriefly, Blow::FreezePastTtl].map(Trouble::Worker);
    let wires = REACHES.iter().flat_map(|reach| WIRES.map(|wire| Trouble::Network(wire, *reach)));
    let others = [
        Trouble::SplitMinorities,
        Trouble::FlushScripts,
        Trouble::KillClients,
        Trouble::KillSubscribers,
        Trouble::LeapAhead,
        Trouble::FreezeNodeBriefly,
        Trouble::FreezeNode,
        Trouble::FreezeMinority,
        Trouble::RestartWithData,
        Trouble::RestartEmpty,
        Trouble::FlushAll,
        Trouble::MinorityGone,
        Trouble::MinorityForgets,
    ];
    blows.into_iter().chain(REACHES.map(Trouble::Cut)).chain(wires).chain(others).collect()
}

/// Faults that last for a while.
#[derive(Debug)]
pub(crate) enum Lasting {
    Lingering(Lingering<Trouble>),
    Frozen(Trouble, usize),
    Killed(usize),
}

impl From<Lingering<Trouble>> for Lasting {
    fn from(lingering: Lingering<Trouble>) -> Self {
        Self::Lingering(lingering)
    }
}

/// Injects random faults, counts what took effect, and heals.
pub(crate) struct Nemesis<'a> {
    pub(crate) nodes: &'a mut Nodes,
    pub(crate) crew: &'a mut Crew,
    pub(crate) storm: Storm<Trouble, Lasting>,
    /// How many times a node lost its memory, or its vote.
    pub(crate) losses: usize,
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(nodes: &'a mut Nodes, crew: &'a mut Crew, seed: u64) -> Self {
        Self { nodes, crew, storm: Storm::new(seed, PAUSES), losses: 0 }
    }

    /// Injects faults for the given time, and until a write of a suspended worker came too late.
    pub(crate) fn rage_until_late(&mut self, length: Duration) {
        self.rage(&troubles(), length);
        let last = Instant::now() + PUT_OFF_MAX * 5;
        while self.crew.register.refused() == 0 {
            assert!(Instant::now() < last, "no write came too late");
            self.strike(Trouble::Worker(Blow::FreezePastTtl));
            self.heal_until(None);
        }
    }

    fn victim(&mut self) -> usize {
        let lock = if self.storm.rng.bool() { HOT } else { COOL };
        let node = self.nodes.running()[0];
        let held: Option<String> = self.nodes.node(node).server.command(&["GET", lock]);
        victim(&mut self.storm.rng, self.crew, held.as_deref())
    }

    /// This many of the running nodes, or none if no majority would be left.
    fn some_nodes(&mut self, count: usize) -> Vec<usize> {
        let mut running = self.nodes.running();
        if running.len() < NODES - MINORITY + count {
            return Vec::new();
        }
        self.storm.rng.shuffle(&mut running);
        running.truncate(count);
        running
    }

    fn links(&mut self, reach: Reach) -> Vec<Link> {
        let (worker, server) = (self.victim(), self.storm.rng.usize(..NODES));
        match reach {
            Reach::Worker => (0..NODES).map(|server| Link { worker, server }).collect(),
            Reach::Node => (0..self.crew.workers.len()).map(|worker| Link { worker, server }).collect(),
            Reach::Link => vec![Link { worker, server }],
        }
    }

    fn split(&mut self, trouble: Trouble) {
        let first = self.victim();
        let second = (first + self.storm.rng.usize(1..self.crew.workers.len())) % self.crew.workers.len();
        let mut servers: Vec<usize> = (0..NODES).collect();
        self.storm.rng.shuffle(&mut servers);
        let links =
            |worker, servers: &[usize]| servers.iter().map(|&server| Link { worker, server }).collect::<Vec<_>>();
        let both = [links(first, &servers[..MINORITY]), links(second, &servers[MINORITY..2 * MINORITY])].concat();
        let fault = if self.storm.rng.bool() { Fault::Hold } else { Fault::Refuse };
        self.storm.cross(self.crew, trouble, both, fault, LONG);
    }

    fn kill_clients(&mut self, trouble: Trouble, kind: &str) {
        for node in self.some_nodes(1) {
            let killed: u64 = self.nodes.node(node).server.command(&["CLIENT", "KILL", "TYPE", kind]);
            self.storm.count(trouble, killed);
        }
    }

    fn flush_scripts(&mut self, trouble: Trouble) {
        for node in self.some_nodes(1) {
            let info: String = self.nodes.node(node).server.command(&["INFO", "memory"]);
            let known = info.lines().find_map(|line| line.strip_prefix("number_of_cached_scripts:"));
            self.nodes.node(node).server.command::<()>(&["SCRIPT", "FLUSH"]);
            self.storm.count(trouble, known.map_or(0, |known| known.trim().parse().unwrap()));
        }
    }

    /// From then on nodes draw different tokens, until they have learned each other's.
    fn leap_ahead(&mut self, trouble: Trouble) {
        for node in self.some_nodes(1) {
            let leapt: u64 = self.nodes.node(node).server.command(&["EVAL", LEAP, "1", "leasehold:node", LEAP_MICROS]);
            self.storm.count(trouble, leapt);
        }
    }

    fn freeze(&mut self, trouble: Trouble, count: usize, length: Range<Duration>) {
        for node in self.some_nodes(count) {
            self.nodes.node(node).freeze();
            self.storm.lasting(Lasting::Frozen(trouble, node), length.clone());
        }
    }

    /// This many nodes forget, once that leaves at most a minority without a vote: this is what the quorum must tolerate.
    fn lose(&mut self, trouble: Trouble, count: usize, mut lose: impl FnMut(&mut Self, usize)) {
        let last = Instant::now() + PUT_OFF_MAX;
        while Instant::now() < last {
            let nodes = self.some_nodes(count);
            let voting = self.nodes.voting();
            let silent: BTreeSet<usize> =
                (0..NODES).filter(|node| !voting.contains(node) || nodes.contains(node)).collect();
            if !nodes.is_empty() && silent.len() <= MINORITY {
                for node in nodes {
                    lose(self, node);
                    self.losses += 1;
                    self.storm.count(trouble, 1);
                }
                return;
            }
            self.heal_until(Some(Instant::now() + BRIEFLY.end));
        }
    }
}

impl storm::Nemesis for Nemesis<'_> {
    type Trouble = Trouble;
    type Lasting = Lasting;

    fn storm(&mut self) -> &mut Storm<Trouble, Lasting> {
        &mut self.storm
    }

    fn begin(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Worker(blow) => {
                let worker = self.victim();
                self.storm.hit(self.crew, trouble, worker, blow);
            }
            Trouble::Cut(reach) => {
                let links = self.links(reach);
                self.storm.count(trouble, self.crew.cut(&links));
            }
            Trouble::Network(wire, reach) => {
                let links = self.links(reach);
                self.storm.cross(self.crew, trouble, links, wire.fault(), TTL / 5..TTL * 3 / 2);
            }
            Trouble::SplitMinorities => self.split(trouble),
            Trouble::FlushScripts => self.flush_scripts(trouble),
            Trouble::KillClients => self.kill_clients(trouble, "normal"),
            Trouble::KillSubscribers => self.kill_clients(trouble, "pubsub"),
            Trouble::LeapAhead => self.leap_ahead(trouble),
            Trouble::FreezeNodeBriefly => self.freeze(trouble, 1, BRIEFLY),
            Trouble::FreezeNode => self.freeze(trouble, 1, LONG),
            Trouble::FreezeMinority => self.freeze(trouble, MINORITY, LONG),
            Trouble::RestartWithData => self.lose(trouble, 1, |own, node| own.nodes.node(node).come_back()),
            Trouble::RestartEmpty => self.lose(trouble, 1, |own, node| own.nodes.node(node).server.restart_empty()),
            Trouble::FlushAll => self.lose(trouble, 1, |own, node| own.nodes.node(node).server.command(&["FLUSHALL"])),
            Trouble::MinorityForgets => {
                self.lose(trouble, MINORITY, |own, node| own.nodes.node(node).server.command(&["FLUSHALL"]));
            }
            Trouble::MinorityGone => self.lose(trouble, MINORITY, |own, node| {
                own.nodes.node(node).kill();
                own.storm.lasting(Lasting::Killed(node), LONG);
            }),
        }
    }

    fn end(&mut self, what: Lasting) {
        match what {
            Lasting::Lingering(what) => self.storm.over(self.crew, what),
            Lasting::Frozen(trouble, node) => {
                self.nodes.node(node).thaw();
                self.storm.count(trouble, 1);
            }
            Lasting::Killed(node) => self.nodes.node(node).come_back(),
        }
    }
}
