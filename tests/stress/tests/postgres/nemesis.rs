//! Faults of the one PostgreSQL and its surroundings.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use stress::cast::{BOOK, COOL, HOT, POOL, TTL};
use stress::crew::{Crew, Link};
use stress::storm::{self, Blow, Lingering, Storm, Wire, victim};
use test_support::PostgresServer;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    Worker(Blow),
    CutConnections,
    Network(Wire),
    EndSessions,
    FreezeServer,
    RestartWithData,
}

pub(crate) const TROUBLES: [Trouble; 11] = [
    Trouble::Worker(Blow::Kill),
    Trouble::Worker(Blow::FreezeBriefly),
    Trouble::Worker(Blow::FreezePastTtl),
    Trouble::CutConnections,
    Trouble::Network(Wire::DropReplies),
    Trouble::Network(Wire::CutAtReply),
    Trouble::Network(Wire::Hold),
    Trouble::Network(Wire::Refuse),
    Trouble::EndSessions,
    Trouble::FreezeServer,
    Trouble::RestartWithData,
];

/// The pause between two faults.
const PAUSES: Range<Duration> = Duration::from_millis(150)..Duration::from_millis(700);
/// How long the server is suspended.
const FROZEN: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(2);

/// Injects random faults, and counts what took effect.
pub(crate) struct Nemesis<'a> {
    server: &'a mut PostgresServer,
    crew: &'a mut Crew,
    pub(crate) storm: Storm<Trouble, Lingering<Trouble>>,
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(server: &'a mut PostgresServer, crew: &'a mut Crew, seed: u64) -> Self {
        Self { server, crew, storm: Storm::new(seed, PAUSES) }
    }

    fn victim(&mut self) -> usize {
        let lock = [HOT, COOL, BOOK, POOL][self.storm.rng.usize(..4)];
        let holders = format!("SELECT note FROM leasehold.hold WHERE name = '{lock}' AND until > leasehold.clock()");
        let notes = self.server.psql(&holders);
        let held = self.storm.rng.choice(notes.lines().collect::<Vec<_>>());
        victim(&mut self.storm.rng, self.crew, held)
    }
}

impl storm::Nemesis for Nemesis<'_> {
    type Trouble = Trouble;
    type Lasting = Lingering<Trouble>;

    fn storm(&mut self) -> &mut Storm<Trouble, Lingering<Trouble>> {
        &mut self.storm
    }

    fn begin(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Worker(blow) => {
                let worker = self.victim();
                self.storm.hit(self.crew, trouble, worker, blow);
            }
            Trouble::CutConnections => {
                let worker = self.storm.rng.usize(..self.crew.workers.len());
                self.storm.count(trouble, self.crew.cut(&[Link { worker, server: 0 }]));
            }
            Trouble::Network(wire) => {
                let links = vec![Link { worker: self.victim(), server: 0 }];
                self.storm.cross(self.crew, trouble, links, wire.fault(), TTL / 5..TTL);
            }
            Trouble::EndSessions => {
                let ended = self.server.psql(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
                );
                self.storm.count(trouble, ended.parse().unwrap());
            }
            Trouble::FreezeServer => {
                self.server.stop();
                thread::sleep(self.storm.time(FROZEN));
                self.server.resume();
                self.storm.count(trouble, 1);
            }
            Trouble::RestartWithData => {
                self.server.restart_with_data();
                self.storm.count(trouble, 1);
            }
        }
    }

    fn end(&mut self, what: Lingering<Trouble>) {
        self.storm.over(self.crew, what);
    }
}
