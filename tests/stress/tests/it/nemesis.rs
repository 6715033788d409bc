//! Who breaks things.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use stress::check::Loss;
use stress::history::now;
use stress::part::{COOL, HOT};
use test_support::{AfterDrop, DataCopy, Fault, RedisServer};

use crate::crew::{Crew, Running, TTL};

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    KillWorker,
    FreezeBriefly,
    FreezePastTtl,
    CutConnections,
    DropReplies,
    CutAtReply,
    HoldBytes,
    RefuseConnections,
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

const TROUBLES: [Trouble; 17] = [
    Trouble::KillWorker,
    Trouble::FreezeBriefly,
    Trouble::FreezePastTtl,
    Trouble::CutConnections,
    Trouble::DropReplies,
    Trouble::CutAtReply,
    Trouble::HoldBytes,
    Trouble::RefuseConnections,
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

/// What ends by itself after a while.
#[derive(Clone, Copy, Debug)]
enum Lasting {
    Frozen { worker: usize, trouble: Trouble },
    Network { worker: usize, trouble: Trouble },
    FullMemory,
}

/// Breaks things by chance, counts what took effect, and heals.
pub(crate) struct Nemesis<'a> {
    pub(crate) server: &'a mut RedisServer,
    pub(crate) crew: &'a mut Crew,
    /// How often each kind took effect.
    pub(crate) fired: BTreeMap<Trouble, u64>,
    pub(crate) losses: Vec<Loss>,
    rng: Rng,
    old_file: DataCopy,
    lasting: Vec<(Instant, Lasting)>,
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(server: &'a mut RedisServer, crew: &'a mut Crew, seed: u64) -> Self {
        let old_file = server.copy_data();
        let (rng, fired, losses) = (Rng::with_seed(seed), BTreeMap::new(), Vec::new());
        Self { server, crew, fired, losses, rng, old_file, lasting: Vec::new() }
    }

    /// Breaks everything in turn, in an order by chance, for as long as it is told and until every kind took
    /// effect.
    pub(crate) fn rage(&mut self, length: Duration) {
        let end = Instant::now() + length;
        let last = end + length + Duration::from_secs(10);
        while Instant::now() < end {
            let mut deck = TROUBLES;
            self.rng.shuffle(&mut deck);
            for trouble in deck.into_iter().take_while(|_| Instant::now() < end) {
                self.strike(trouble);
            }
        }
        // What lasts is counted when it is over.
        self.heal_until(None);
        while let Some(missing) = TROUBLES.iter().find(|trouble| !self.fired.contains_key(trouble)) {
            assert!(Instant::now() < last, "{missing:?} never took effect");
            self.strike(*missing);
            self.heal_until(None);
        }
    }

    fn strike(&mut self, trouble: Trouble) {
        self.begin(trouble);
        let pause = Duration::from_millis(self.rng.u64(200..900));
        self.heal_until(Some(Instant::now() + pause));
    }

    fn begin(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::KillWorker => {
                let worker = self.victim();
                self.crew.replace(worker);
                self.count(trouble, 1);
            }
            Trouble::FreezeBriefly => self.freeze(trouble, TTL / 5..TTL * 4 / 5),
            Trouble::FreezePastTtl => self.freeze(trouble, TTL * 6 / 5..TTL * 2),
            Trouble::CutConnections => {
                let cut = self.crew.workers[self.rng.usize(..self.crew.workers.len())].proxy.cut();
                self.count(trouble, cut as u64);
            }
            Trouble::DropReplies => self.network(trouble, Fault::DropReplies(AfterDrop::Keep)),
            Trouble::CutAtReply => self.network(trouble, Fault::DropReplies(AfterDrop::Cut)),
            Trouble::HoldBytes => self.network(trouble, Fault::Hold),
            Trouble::RefuseConnections => self.network(trouble, Fault::Refuse),
            Trouble::FlushScripts => {
                let known = self.info("memory", "number_of_cached_scripts:");
                self.server.command::<()>(&["SCRIPT", "FLUSH"]);
                self.count(trouble, known);
            }
            Trouble::KillClients => self.kill_clients(trouble, "normal"),
            Trouble::KillSubscribers => self.kill_clients(trouble, "pubsub"),
            Trouble::FillMemory => {
                self.server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
                self.lasting(Lasting::FullMemory, TTL / 5..TTL);
            }
            Trouble::FreezeServer => {
                self.server.stop();
                thread::sleep(Duration::from_millis(self.rng.u64(100..600)));
                self.server.resume();
                self.count(trouble, 1);
            }
            Trouble::RestartWithData => {
                self.server.restart_with_data();
                self.count(trouble, 1);
            }
            Trouble::RestartEmpty => self.lose(trouble, |server, _| server.restart_empty()),
            Trouble::RestartFromOldFile => self.lose(trouble, RedisServer::restart_from),
            Trouble::FlushAll => self.lose(trouble, |server, _| server.command::<()>(&["FLUSHALL"])),
        }
    }

    /// A worker to strike at: often the one that holds a lock now, since that hurts most.
    fn victim(&mut self) -> usize {
        let lock = if self.rng.bool() { HOT } else { COOL };
        let held: Option<String> = self.server.command(&["GET", lock]);
        let holder = held.as_deref().and_then(pid_in).and_then(|pid| self.crew.with_pid(pid));
        match holder {
            Some(holder) if self.rng.u32(..3) > 0 => holder,
            Some(_) | None => self.rng.usize(..self.crew.workers.len()),
        }
    }

    fn freeze(&mut self, trouble: Trouble, length: std::ops::Range<Duration>) {
        let worker = self.victim();
        if self.crew.workers[worker].state == Running::Yes {
            self.crew.workers[worker].freeze();
            self.lasting(Lasting::Frozen { worker, trouble }, length);
        }
    }

    fn network(&mut self, trouble: Trouble, fault: Fault) {
        let worker = self.victim();
        self.crew.workers[worker].proxy.set(fault);
        if fault == Fault::Refuse {
            // Otherwise nobody would connect.
            self.crew.workers[worker].proxy.cut();
        }
        self.lasting(Lasting::Network { worker, trouble }, TTL / 5..TTL);
    }

    fn kill_clients(&mut self, trouble: Trouble, kind: &str) {
        let killed: u64 = self.server.command(&["CLIENT", "KILL", "TYPE", kind]);
        self.count(trouble, killed);
    }

    fn lose(&mut self, trouble: Trouble, lose: impl FnOnce(&mut RedisServer, &DataCopy)) {
        // Tokens of before count up from an earlier reading of the server's clock, and never as fast as it runs.
        let watermark = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros().try_into().unwrap();
        lose(self.server, &self.old_file);
        self.losses.push(Loss { at: now(), watermark });
        self.count(trouble, 1);
    }

    fn lasting(&mut self, what: Lasting, length: std::ops::Range<Duration>) {
        let micros = |length: Duration| u64::try_from(length.as_micros()).unwrap();
        let length = Duration::from_micros(self.rng.u64(micros(length.start)..micros(length.end)));
        self.lasting.push((Instant::now() + length, what));
    }

    /// Ends what is over by then, at its time; everything where no time is given.
    fn heal_until(&mut self, end: Option<Instant>) {
        self.lasting.sort_by_key(|(over, _)| *over);
        let due = self.lasting.iter().take_while(|(over, _)| end.is_none_or(|end| *over <= end)).count();
        let due: Vec<_> = self.lasting.drain(..due).collect();
        for (over, what) in due {
            thread::sleep(over.saturating_duration_since(Instant::now()));
            self.heal(what);
        }
        thread::sleep(end.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now())));
    }

    fn heal(&mut self, what: Lasting) {
        match what {
            Lasting::Frozen { worker, trouble } => {
                // It may have been killed meanwhile, and another have come in its place.
                if self.crew.workers[worker].state == Running::Frozen {
                    self.crew.workers[worker].thaw();
                    self.count(trouble, 1);
                }
            }
            Lasting::Network { worker, trouble } => {
                let proxy = &self.crew.workers[worker].proxy;
                let fired = proxy.fired();
                proxy.heal();
                // No network gives up single replies and goes on, so the connection ends with the fault.
                if trouble == Trouble::DropReplies {
                    proxy.cut();
                }
                self.count(trouble, fired);
            }
            Lasting::FullMemory => {
                let refused = self.info("errorstats", "errorstat_OOM:count=");
                self.server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
                self.count(Trouble::FillMemory, refused);
            }
        }
    }

    fn info(&self, section: &str, start: &str) -> u64 {
        let info: String = self.server.command(&["INFO", section]);
        info.lines().find_map(|line| line.strip_prefix(start)).map_or(0, |value| value.trim().parse().unwrap())
    }

    fn count(&mut self, trouble: Trouble, times: u64) {
        if times > 0 {
            *self.fired.entry(trouble).or_default() += times;
        }
    }
}

/// The process id in the note of a lease: `lh1:OWNER:LOW:HIGH:PID@HOST WHY`.
fn pid_in(value: &str) -> Option<u32> {
    value.splitn(5, ':').nth(4)?.split_once('@')?.0.parse().ok()
}
