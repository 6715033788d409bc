//! Faults of the one Redis and its surroundings.

use std::ops::Range;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stress::cast::{BOOK, COOL, HOT, POOL, TTL};
use stress::check::Loss;
use stress::crew::{Crew, Link};
use stress::history::now;
use stress::storm::{self, Blow, Lingering, Storm, Wire, victim};
use test_support::{DataCopy, RedisServer};

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    Worker(Blow),
    CutConnections,
    Network(Wire),
    FlushScripts,
    KillClients,
    KillSubscribers,
    FillMemory,
    FreezeServer,
    RestartWithData,
    RestartEmpty,
    RestartFromOldFile,
    FlushAll,
}

pub(crate) const TROUBLES: [Trouble; 17] = [
    Trouble::Worker(Blow::Kill),
    Trouble::Worker(Blow::FreezeBriefly),
    Trouble::Worker(Blow::FreezePastTtl),
    Trouble::CutConnections,
    Trouble::Network(Wire::DropReplies),
    Trouble::Network(Wire::CutAtReply),
    Trouble::Network(Wire::Hold),
    Trouble::Network(Wire::Refuse),
    Trouble::FlushScripts,
    Trouble::KillClients,
    Trouble::KillSubscribers,
    Trouble::FillMemory,
    Trouble::FreezeServer,
    Trouble::RestartWithData,
    Trouble::RestartEmpty,
    Trouble::RestartFromOldFile,
    Trouble::FlushAll,
];

/// The pause between two faults.
const PAUSES: Range<Duration> = Duration::from_millis(150)..Duration::from_millis(700);

/// Faults that last for a while.
#[derive(Debug)]
pub(crate) enum Lasting {
    Lingering(Lingering<Trouble>),
    FullMemory,
}

impl From<Lingering<Trouble>> for Lasting {
    fn from(lingering: Lingering<Trouble>) -> Self {
        Self::Lingering(lingering)
    }
}

/// Injects random faults, counts what took effect, and heals.
pub(crate) struct Nemesis<'a> {
    pub(crate) server: &'a mut RedisServer,
    pub(crate) crew: &'a mut Crew,
    pub(crate) storm: Storm<Trouble, Lasting>,
    pub(crate) losses: Vec<Loss>,
    old_file: DataCopy,
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(server: &'a mut RedisServer, crew: &'a mut Crew, seed: u64) -> Self {
        let old_file = server.copy_data();
        Self { server, crew, storm: Storm::new(seed, PAUSES), losses: Vec::new(), old_file }
    }

    fn victim(&mut self) -> usize {
        let lock = [HOT, COOL, BOOK, POOL][self.storm.rng.usize(..4)];
        let alone: Option<String> = self.server.command(&["GET", lock]);
        // If several hold it, the value does not say who.
        let together: Vec<String> = self.server.command(&["HVALS", &format!("leasehold:{{{lock}}}:s")]);
        let held = self.storm.rng.choice(together).or(alone);
        victim(&mut self.storm.rng, self.crew, held.as_deref())
    }

    fn kill_clients(&mut self, trouble: Trouble, kind: &str) {
        let killed: u64 = self.server.command(&["CLIENT", "KILL", "TYPE", kind]);
        self.storm.count(trouble, killed);
    }

    fn lose(&mut self, trouble: Trouble, lose: impl FnOnce(&mut RedisServer, &DataCopy)) {
        // Tokens of before count up from an earlier reading of the server's clock, and never as fast as it runs.
        let watermark = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros().try_into().unwrap();
        lose(self.server, &self.old_file);
        self.losses.push(Loss { at: now(), watermark });
        self.storm.count(trouble, 1);
    }

    fn info(&self, section: &str, start: &str) -> u64 {
        let info: String = self.server.command(&["INFO", section]);
        info.lines().find_map(|line| line.strip_prefix(start)).map_or(0, |value| value.trim().parse().unwrap())
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
            Trouble::CutConnections => {
                let worker = self.storm.rng.usize(..self.crew.workers.len());
                self.storm.count(trouble, self.crew.cut(&[Link { worker, server: 0 }]));
            }
            Trouble::Network(wire) => {
                let links = vec![Link { worker: self.victim(), server: 0 }];
                self.storm.cross(self.crew, trouble, links, wire.fault(), TTL / 5..TTL);
            }
            Trouble::FlushScripts => {
                let known = self.info("memory", "number_of_cached_scripts:");
                self.server.command::<()>(&["SCRIPT", "FLUSH"]);
                self.storm.count(trouble, known);
            }
            Trouble::KillClients => self.kill_clients(trouble, "normal"),
            Trouble::KillSubscribers => self.kill_clients(trouble, "pubsub"),
            Trouble::FillMemory => {
                self.server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
                self.storm.lasting(Lasting::FullMemory, TTL / 5..TTL);
            }
            Trouble::FreezeServer => {
                self.server.stop();
                thread::sleep(self.storm.time(Duration::from_millis(100)..Duration::from_millis(600)));
                self.server.resume();
                self.storm.count(trouble, 1);
            }
            Trouble::RestartWithData => {
                self.server.restart_with_data();
                self.storm.count(trouble, 1);
            }
            Trouble::RestartEmpty => self.lose(trouble, |server, _| server.restart_empty()),
            Trouble::RestartFromOldFile => self.lose(trouble, RedisServer::restart_from),
            Trouble::FlushAll => self.lose(trouble, |server, _| server.command::<()>(&["FLUSHALL"])),
        }
    }

    fn end(&mut self, what: Lasting) {
        match what {
            Lasting::Lingering(what) => self.storm.over(self.crew, what),
            Lasting::FullMemory => {
                let refused = self.info("errorstats", "errorstat_OOM:count=");
                self.server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
                self.storm.count(Trouble::FillMemory, refused);
            }
        }
    }
}
