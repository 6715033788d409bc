//! A real node and the reference, which get the same requests.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::node::{Ask, NodeState, Record, RunId, Told, View};
use lock_core::{BackendError, Certainty, Evidence, LockName, Moment, ReleaseRequest, Terms, Ttl};
use lock_memory::node::{Hold, NodeStore};
use redis::Connection;
use test_support::{RedisOptions, RedisServer};

use super::super::{Connect, Node, view};
use super::author::names;
use crate::support::{SOON, eventually};

/// What a node answers.
type Reply = Result<Told, BackendError>;

/// The value of a lock's key, and its remaining time in milliseconds.
type Kept = (Option<String>, i64);
/// The server's clock, and the stored state of three locks.
type Looked = ([u64; 2], Option<String>, i64, Option<String>, i64, Option<String>, i64);

/// No request is sent while something is about to expire: two readings of the clock would decide. Longer once a request was slow.
const EDGE: Duration = Duration::from_millis(10);
/// Anything that ends within this time is waited for.
const SOONEST: Duration = Duration::from_millis(200);
/// How much the rounding to milliseconds may add to how long something lasts.
const ROUNDING: Duration = Duration::from_millis(5);

/// The answers, and the state of the reference before and after.
pub(super) struct Answered {
    pub(super) told: Reply,
    pub(super) at: Moment,
    pub(super) before: NodeStore,
    pub(super) after: NodeStore,
    pub(super) run: RunId,
}

pub(super) struct Pair {
    server: RedisServer,
    connection: Connection,
    node: Node,
    reference: NodeStore,
    run: RunId,
    /// When the requested lease ends.
    ends: BTreeSet<Moment>,
    /// How long the longest request took: the starts of a lease on the two may differ by this much.
    slowest: Duration,
}

impl Pair {
    pub(super) fn start(connect: Connect) -> Self {
        // Answered writes are in the file, which survives a killed server: nobody has to wait for the disk.
        let options = RedisOptions::default().arguments(&["--appendonly", "yes", "--appendfsync", "no"]);
        let server = RedisServer::start_with(options);
        let (connection, node) = (server.connection(), connect(&server.url()));
        let run = view(node.ask(&Ask::Look, SOON)).run;
        let (reference, ends) = (NodeStore::default(), BTreeSet::new());
        Self { server, connection, node, reference, run, ends, slowest: Duration::ZERO }
    }

    /// The reference's present view of itself.
    pub(super) fn view(&mut self) -> View {
        let now = self.now();
        self.reference.view(now, &self.run)
    }

    /// Asks both. Returns how they differ, if they do.
    pub(super) fn ask(&mut self, ask: &Ask) -> Result<Answered, String> {
        let begun = self.away_from_an_end();
        let told = self.node.ask(ask, SOON);
        let ended = self.now();
        self.slowest = self.slowest.max(ended.since(begun));
        self.ends.extend(lives(ask).into_iter().map(|life| ended + life));
        let mut others = Vec::new();
        for at in moments(begun, ended, &told) {
            let mut after = self.reference.clone();
            let other = after.ask(at, None, &self.run, ask);
            if self.alike(&told, &other) {
                let before = std::mem::replace(&mut self.reference, after.clone());
                return Ok(Answered { told, at, before, after, run: self.run.clone() });
            }
            others.push(other);
        }
        Err(format!("Redis: {told:?}\nreference: {others:?}"))
    }

    /// Deletes a lock's key on both, without a request.
    pub(super) fn lose_key(&mut self, name: &LockName) {
        let now = self.away_from_an_end();
        redis::cmd("DEL").arg(name.as_str()).exec(&mut self.connection).unwrap();
        let Some(owner) = self.reference.holder(name, now).map(|hold| hold.owner) else { return };
        let request = ReleaseRequest {
            name: name.clone(),
            owner,
            terms: Terms::exclusive(Ttl::MIN),
            certainty: Certainty::Answered,
            keep: None,
            evidence: Evidence::Nothing,
        };
        self.reference.ask(now, None, &self.run, &Ask::Release(request.into())).unwrap();
    }

    /// Waits until the holds that end soon have ended. Returns how many there were.
    pub(super) fn wait_for_an_end(&mut self) -> usize {
        let now = self.away_from_an_end();
        let ends = self.reference.holds(now).map(|(_, hold)| hold.until);
        let soon: Vec<_> = ends.filter(|end| *end < now + SOONEST).collect();
        if let Some(last) = soon.iter().max() {
            std::thread::sleep(last.since(now));
        }
        soon.len()
    }

    /// Starts the server again with its data.
    pub(super) fn restart(&mut self) {
        self.server.restart_with_data();
        self.connection = self.server.connection();
        let earlier = self.run.clone();
        self.run = view(Ok(eventually("the node is found again", || self.node.ask(&Ask::Look, SOON)))).run;
        assert_ne!(self.run, earlier);
    }

    /// Both lose all their data.
    pub(super) fn forget(&mut self) {
        redis::cmd("FLUSHALL").exec(&mut self.connection).unwrap();
        self.reference = NodeStore::default();
    }

    /// Compares holders, tokens and remaining times. Returns how they differ, if they do.
    pub(super) fn compare_holds(&mut self) -> Result<(), String> {
        self.away_from_an_end();
        let mut look = redis::pipe();
        look.atomic().cmd("TIME");
        for name in names() {
            look.get(name.as_str()).pttl(name.as_str());
        }
        let (time, a, a_left, b, b_left, c, c_left): Looked = look.query(&mut self.connection).unwrap();
        let kept = [(a, a_left), (b, b_left), (c, c_left)];
        names().iter().zip(kept).try_for_each(|(name, kept)| self.compare_hold(moment(time), name, kept))
    }

    fn compare_hold(&self, now: Moment, name: &LockName, kept: Kept) -> Result<(), String> {
        let hold = self.reference.holder(name, now).map(|hold| (hold, hold.until.since(now)));
        let same = match (&kept, hold) {
            ((Some(value), left), Some((hold, until))) => {
                let left = u64::try_from(*left).map(Duration::from_millis);
                value.starts_with(&beginning(hold)) && left.is_ok_and(|left| self.is_near(left, until))
            }
            ((None, _), None) => true,
            ((Some(_), _), None) | ((None, _), Some(_)) => false,
        };
        if same { Ok(()) } else { Err(format!("{name}\nRedis: {kept:?} (ms)\nreference: {hold:?}")) }
    }

    /// The server's clock.
    fn now(&mut self) -> Moment {
        moment(redis::cmd("TIME").query(&mut self.connection).unwrap())
    }

    /// The server's clock once nothing ends around it.
    fn away_from_an_end(&mut self) -> Moment {
        loop {
            let (now, edge) = (self.now(), EDGE.max(self.slowest + ROUNDING));
            let Some(end) = self.ends.range(now - edge..now + edge).next_back() else { return now };
            std::thread::sleep((*end + edge).since(now));
        }
    }

    fn is_near(&self, one: Duration, other: Duration) -> bool {
        one.abs_diff(other) <= self.slowest + ROUNDING
    }

    /// Whether both answers are equal apart from durations.
    fn alike(&self, one: &Reply, other: &Reply) -> bool {
        match (one, other) {
            (Ok(Told::View(one)), Ok(Told::View(other))) => self.alike_view(one, other),
            (Ok(Told::Records(one)), Ok(Told::Records(other))) => self.alike_records(one, other),
            (
                Ok(Told::Held { holder: one, remaining: Some(left) }),
                Ok(Told::Held { holder: other, remaining: Some(other_left) }),
            ) => one == other && self.is_near(*left, *other_left),
            (Ok(one), Ok(other)) => one == other,
            (Err(one), Err(other)) => (one.kind(), one.effect()) == (other.kind(), other.effect()),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        }
    }

    fn alike_records(&self, one: &[Option<Record>], other: &[Option<Record>]) -> bool {
        let near = |(one, other): (&Option<Record>, &Option<Record>)| match (one, other) {
            (Some(one), Some(other)) => one.epoch == other.epoch && self.is_near(one.age, other.age),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        one.len() == other.len() && one.iter().zip(other).all(near)
    }

    fn alike_view(&self, one: &View, other: &View) -> bool {
        let mut other = other.clone();
        if self.is_near(Duration::from_micros(one.clock.0), Duration::from_micros(other.clock.0)) {
            other.clock = one.clock;
        }
        if let (NodeState::Abstaining { since: one, .. }, NodeState::Abstaining { since, .. }) =
            (one.state, &mut other.state)
            && self.is_near(one, *since)
        {
            *since = one;
        }
        *one == other
    }
}

/// What `TIME` says.
fn moment([seconds, micros]: [u64; 2]) -> Moment {
    Moment::ORIGIN + Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// The moments at which a request may have been answered: what the server says of it, and else its beginning and end.
fn moments(begun: Moment, ended: Moment, told: &Reply) -> Vec<Moment> {
    let said = match told {
        Ok(Told::Granted { clock, .. }) => vec![clock.0],
        // An install raises the counter to the clock and looks at it again for the view.
        Ok(Told::View(view)) => vec![view.counter, view.clock.0],
        _ => Vec::new(),
    };
    let said = said.into_iter().map(|micros| Moment::ORIGIN + Duration::from_micros(micros));
    said.filter(|at| (begun..=ended).contains(at)).chain([begun, ended]).collect()
}

/// How long the requested lease lasts.
fn lives(ask: &Ask) -> Vec<Duration> {
    match ask {
        Ask::Acquire { claim, .. } => vec![claim.terms.ttl.get()],
        Ask::Fence { leases, .. } => leases.iter().map(|lease| lease.terms.ttl.get()).collect(),
        Ask::Record { keep, .. } => vec![*keep],
        Ask::Release(request) => vec![request.terms.ttl.get().max(Duration::from_secs(10))],
        Ask::Look | Ask::Mark { .. } | Ask::Install { .. } | Ask::Move { .. } | Ask::Inspect(_) => Vec::new(),
    }
}

/// How K begins.
fn beginning(hold: &Hold) -> String {
    format!("lh1:{}:{}:{}:", hold.owner.to_wire(), hold.tokens.low(), hold.tokens.high())
}
