//! One server: the scripts, the dwell, its part in the replication, and what it would have after a restart.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Evidence, Moment, Operation, Released};

use super::mistake::Mistake;
use crate::clock::{Clock, Time};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::network::{ConnId, StoreId};
use crate::one::{Ask, ConfigEpoch, Millis, Model, Outcome, Refused, Say, micros, millis};
use crate::redis::{Database, Server};

/// The longest ttl that anybody asks for.
pub(super) const MAX_TTL: Duration = Duration::from_secs(8);
/// How long a server dwells: for the longest ttl, and for as long as an old primary may grant something.
const DWELL: Duration = MAX_TTL.saturating_add(Duration::from_secs(10));
/// How far back a restarted server's data may be.
const LOSES_MAX: Duration = Duration::from_secs(2);
/// How many runs of one server there are at most.
const RUNS: u64 = 1000;

/// Whether a server takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It was chosen in this epoch.
    Primary(ConfigEpoch),
    /// It takes in what this one sends.
    Replica(StoreId),
}

/// The data after a command, and how many commands there were.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    offset: u64,
    data: Rc<Database>,
}

/// What a restarted server remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    All,
    /// All but the last moments.
    Older,
    Nothing,
}

#[derive(Debug)]
pub(super) struct Node {
    server: Server,
    clock: Clock,
    pub(super) is_up: bool,
    pub(super) role: Role,
    pub(super) offset: u64,
    /// What its primary has sent, and when it arrives.
    inbound: VecDeque<(Time, Entry)>,
    /// Nothing arrives before.
    pub(super) lags_until: Time,
    /// What it had lately.
    recent: VecDeque<(Time, Entry)>,
    mistake: Option<Mistake>,
}

impl Node {
    pub(super) fn new(dice: &mut Dice, number: u64, role: Role, clock: Clock, mistake: Option<Mistake>) -> Self {
        let server = <Server as Model>::new(dice, None).in_run(number * RUNS);
        let (inbound, recent) = (VecDeque::new(), VecDeque::new());
        let (is_up, offset, lags_until) = (true, 0, Time::START);
        Self { server, clock, is_up, role, offset, inbound, lags_until, recent, mistake }
    }

    /// An operator says that it is new.
    pub(super) fn init(&mut self) {
        self.server.verified();
    }

    pub(super) fn now(&self, at: Time) -> Moment {
        self.clock.read(at)
    }

    pub(super) fn model(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Runs a command.
    pub(super) fn run(&mut self, at: Time, conn: ConnId, ask: &Ask) -> (Outcome, Option<Fault>) {
        let now = self.now(at);
        if let Ask::Hello(_) = ask {
            self.verify(now);
        }
        // A server with replicas draws tokens from its clock.
        self.server.data.counter = self.server.data.counter.max(Some(micros(now)));
        let mut ask = ask.clone();
        if let (Ask::Release(request), Some(Mistake::EveryReleaseHandsOver)) = (&mut ask, self.mistake) {
            request.evidence = Evidence::ValidHold;
        }
        let outcome = self.server.ask(now, conn, &ask);
        self.offset += 1;
        match self.server.data.dwell.filter(|ends| millis(now) <= *ends) {
            Some(ends) => during_dwell(now, ends, &ask, outcome),
            None => (outcome, None),
        }
    }

    /// If the data were last verified for another run, the server has forgotten something, or was a replica.
    fn verify(&mut self, now: Moment) {
        if !self.server.is_verified() && self.mistake != Some(Mistake::NoDwell) {
            let ends = millis(now + DWELL);
            self.server.data.dwell = self.server.data.dwell.max(Some(ends));
        }
    }

    pub(super) fn entry(&self) -> Entry {
        Entry { offset: self.offset, data: Rc::new(self.server.data.clone()) }
    }

    /// Remembers what it has, for a restart.
    pub(super) fn remember(&mut self, at: Time, entry: Entry) {
        self.recent.push_back((at, entry));
        while self.recent.front().is_some_and(|(then, _)| LOSES_MAX < at.since(*then)) {
            self.recent.pop_front();
        }
    }

    /// Takes in what arrives from its primary then, behind everything that was sent before. Returns when.
    pub(super) fn send(&mut self, at: Time, entry: Entry) -> Time {
        let last = self.inbound.back().map_or(Time::START, |(last, _)| *last);
        let at = at.max(last).max(self.lags_until);
        self.inbound.push_back((at, entry));
        at
    }

    /// Takes in what has arrived.
    pub(super) fn take_in(&mut self, at: Time) {
        while self.inbound.front().is_some_and(|(then, _)| *then <= at) {
            let Some((_, entry)) = self.inbound.pop_front() else { return };
            self.offset = entry.offset;
            self.server.data = Database::clone(&entry.data);
        }
    }

    /// Is a replica of this one from now on, whose data it does not have yet.
    pub(super) fn follow(&mut self, primary: StoreId) {
        self.role = Role::Replica(primary);
        self.inbound.clear();
        self.offset = 0;
    }

    /// Is the primary from now on, with the data that it has.
    pub(super) fn promote(&mut self, at: Time, epoch: ConfigEpoch) {
        self.role = Role::Primary(epoch);
        self.inbound.clear();
        self.begin_run(at, self.server.data.clone());
    }

    /// Starts again.
    pub(super) fn restart(&mut self, at: Time, memory: Memory, dice: &mut Dice) {
        let data = match memory {
            Memory::All => self.server.data.clone(),
            Memory::Older if !self.recent.is_empty() => {
                let which = dice.from(0, self.recent.len() - 1);
                self.recent.get(which).map(|(_, entry)| Database::clone(&entry.data)).unwrap_or_default()
            }
            Memory::Older | Memory::Nothing => Database::default(),
        };
        self.is_up = true;
        self.begin_run(at, data);
    }

    /// Starts again without its data, which its primary sends once more.
    pub(super) fn forget(&mut self, at: Time) {
        self.inbound.clear();
        self.offset = 0;
        self.begin_run(at, Database::default());
    }

    /// The next client that verifies the data finds another run, or another history.
    fn begin_run(&mut self, at: Time, data: Database) {
        self.server.start_again(self.clock.read(at), data);
        self.recent.clear();
    }
}

/// The fault that an answer shows during a dwell. A claim that was refused learns when the dwell ends.
fn during_dwell(now: Moment, ends: Millis, ask: &Ask, outcome: Outcome) -> (Outcome, Option<Fault>) {
    match (ask, &outcome.say) {
        (_, Say::Acquire(Err(Refused::Dwells))) => (dwells(now, ends), Some(Fault::Dwelt)),
        (Ask::Release(_), _) if !outcome.granted.is_empty() => (outcome, Some(Fault::HandedOverInDwell)),
        (Ask::Release(request), Say::Release(Ok(Released::Released))) if request.evidence != Evidence::ValidHold => {
            (outcome, Some(Fault::FreedInDwell))
        }
        _ => (outcome, None),
    }
}

/// The answer to a claim for a free lock until then.
fn dwells(now: Moment, ends: Millis) -> Outcome {
    let error = BackendError::new("sim", Operation::Acquire, ErrorKind::Unavailable, Effect::None, "the server dwells");
    let left = Duration::from_millis(ends.saturating_sub(millis(now)) + 1);
    let say = Say::Acquire(Err(Refused::Other(error.with_end(left))));
    Outcome { say, published: Vec::new(), granted: Vec::new() }
}
