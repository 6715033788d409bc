//! Faults of a cluster and its surroundings.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use stress::cast::{BOOK, COOL, HOT, POOL, TTL};
use stress::crew::{Crew, Link};
use stress::storm::{self, Blow, Lingering, Storm, Wire};
use test_support::Cluster;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    Worker(Blow),
    CutConnections,
    Network(Wire),
    MoveHashSlot,
    FailOver,
}

pub(crate) const TROUBLES: [Trouble; 8] = [
    Trouble::Worker(Blow::Kill),
    Trouble::Worker(Blow::FreezePastTtl),
    Trouble::CutConnections,
    Trouble::Network(Wire::DropReplies),
    Trouble::Network(Wire::Hold),
    Trouble::Network(Wire::Refuse),
    Trouble::MoveHashSlot,
    Trouble::FailOver,
];

/// The pause between two faults.
const PAUSES: Range<Duration> = Duration::from_millis(100)..Duration::from_millis(400);
/// How long a hash slot stays where it is, and then between two primaries.
const STEP: Range<Duration> = Duration::from_millis(20)..Duration::from_millis(300);

/// Injects random faults, and counts what took effect.
pub(crate) struct Nemesis<'a> {
    cluster: &'a Cluster,
    crew: &'a mut Crew,
    pub(crate) storm: Storm<Trouble, Lingering<Trouble>>,
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(cluster: &'a Cluster, crew: &'a mut Crew, seed: u64) -> Self {
        Self { cluster, crew, storm: Storm::new(seed, PAUSES) }
    }

    fn hash_slot(&mut self) -> u16 {
        self.cluster.hash_slot_of([HOT, COOL, BOOK, POOL][self.storm.rng.usize(..4)])
    }

    /// Keys come while a hash slot moves, and go on to the other primary in two steps.
    fn move_hash_slot(&mut self, trouble: Trouble) {
        let (hash_slot, other) = (self.hash_slot(), self.hash_slot());
        let to = self.cluster.primary_of(other);
        if self.cluster.primary_of(hash_slot) == to {
            return;
        }
        let migration = self.cluster.migrate(hash_slot, to);
        thread::sleep(self.storm.time(STEP));
        migration.move_keys();
        thread::sleep(self.storm.time(STEP));
        migration.finish();
        self.storm.count(trouble, 1);
    }
}

impl storm::Nemesis for Nemesis<'_> {
    type Trouble = Trouble;
    type Lasting = Lingering<Trouble>;

    fn storm(&mut self) -> &mut Storm<Trouble, Lingering<Trouble>> {
        &mut self.storm
    }

    fn begin(&mut self, trouble: Trouble) {
        let worker = self.storm.rng.usize(..self.crew.workers.len());
        let links = (0..self.cluster.servers.len()).map(|server| Link { worker, server }).collect::<Vec<_>>();
        match trouble {
            Trouble::Worker(blow) => self.storm.hit(self.crew, trouble, worker, blow),
            Trouble::CutConnections => self.storm.count(trouble, self.crew.cut(&links)),
            Trouble::Network(wire) => self.storm.cross(self.crew, trouble, links, wire.fault(), TTL / 5..TTL),
            Trouble::MoveHashSlot => self.move_hash_slot(trouble),
            Trouble::FailOver => {
                let hash_slot = self.hash_slot();
                self.cluster.fail_over(hash_slot);
                self.storm.count(trouble, 1);
            }
        }
    }

    fn end(&mut self, what: Lingering<Trouble>) {
        self.storm.over(self.crew, what);
    }
}
