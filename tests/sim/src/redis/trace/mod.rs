//! A trace of the verbs, for the model and for the scripts on a real Redis: both must say the same.
//!
//! An [`Author`] makes it up, step by step, from a seed and from what was answered so far. A [`Model`] answers at the
//! moment that it is given, so that it can follow a real server's clock.

mod met;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lock_core::{
    Answer, Certainty, Claim, Evidence, Fairness, FencingToken, Lease, LockName, Moment, NameKind, Note, Owner,
    Queueing, ReleaseRequest, StoreEvent, Terms, Ttl, Width,
};

pub use met::Met;
use met::met_in;

use crate::dice::Dice;
use crate::network::ConnId;
use crate::one::Model as _;
use crate::one::millis;
pub use crate::one::{Ask, Inbox, Refused, Say, Seat, operator};
use crate::redis::server::{Detail, Server};

/// What a step does.
#[derive(Clone, Debug)]
pub enum Step {
    /// One of our clients asks.
    Ask(Ask),
    /// A client of the plain layout takes a lock that is free, under this value.
    ForeignSet(LockName, u64, Duration),
    /// It releases the lock.
    ForeignDelete(LockName, u64),
    /// A dwell begins, for this time.
    Dwell(Duration),
    /// Time passes.
    Wait(Duration),
}

/// What a server answered, and which messages it sent to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The answer.
    pub say: Say,
    /// The messages.
    pub told: Vec<(Inbox, StoreEvent)>,
}

impl Said {
    /// Whether both say the same; the remaining time of a lease may differ by this much.
    pub fn is_like(&self, other: &Self, by: Duration) -> bool {
        if self.told != other.told {
            return false;
        }
        let (Say::Acquire(Ok(mine)), Say::Acquire(Ok(theirs))) = (&self.say, &other.say) else {
            return self.say == other.say;
        };
        let apart = remaining(mine).unwrap_or_default().abs_diff(remaining(theirs).unwrap_or_default());
        apart <= by && without_remaining(mine) == without_remaining(theirs)
    }
}

fn remaining(answer: &Answer) -> Option<Duration> {
    match answer {
        Answer::Queued { remaining, .. } | Answer::Busy { remaining, .. } => *remaining,
        Answer::Granted { .. } => None,
    }
}

fn without_remaining(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    if let Answer::Queued { remaining, .. } | Answer::Busy { remaining, .. } = &mut answer {
        *remaining = None;
    }
    answer
}

/// The model's side of a trace.
#[derive(Clone, Debug)]
pub struct Model(Server);

/// All clients use the same connection here: connections matter only to the network.
const CONN: ConnId = ConnId(0);

impl Model {
    /// A server with this counter, and a listener at each of these inboxes.
    pub fn new(now: Moment, counter: u64, inboxes: &[Inbox]) -> Self {
        let mut server = Server::new(None, Detail::AsRedis);
        for inbox in inboxes {
            server.ask(now, CONN, &Ask::Hello(Some(*inbox)));
        }
        server.data.counter = Some(counter);
        Self(server)
    }

    /// Runs what is asked at this moment of the server's clock.
    pub fn ask(&mut self, now: Moment, ask: &Ask) -> Said {
        let outcome = self.0.ask(now, CONN, ask);
        Said { say: outcome.say, told: outcome.published }
    }

    /// Loses the counter, and nothing else.
    pub fn lose_counter(&mut self) {
        self.0.data.counter = None;
    }

    /// From now on, no free lock is granted for this time.
    pub fn dwell(&mut self, now: Moment, life: Duration) {
        self.0.data.dwell = Some(millis(now + life));
    }

    /// `SET name value NX PX life`. Returns whether the lock was free.
    pub fn foreign_set(&mut self, now: Moment, name: &LockName, value: u64, life: Duration) -> bool {
        let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        self.foreign(now, &Ask::ForeignSet(name.clone(), value, life))
    }

    /// Compare and delete. Returns whether it was there.
    pub fn foreign_delete(&mut self, now: Moment, name: &LockName, value: u64) -> bool {
        self.foreign(now, &Ask::ForeignDelete(name.clone(), value))
    }

    fn foreign(&mut self, now: Moment, ask: &Ask) -> bool {
        self.0.ask(now, CONN, ask).say == Say::Foreign(true)
    }
}

/// Makes up a trace.
#[derive(Debug)]
pub struct Author {
    dice: Dice,
    seats: Vec<Seat>,
    names: Vec<LockName>,
    claims: Vec<(Claim, Seat)>,
    /// What each owner was granted, as far as answers and messages said.
    leases: BTreeMap<Owner, Lease>,
    foreign: Option<(LockName, u64)>,
    owners: u64,
    met: BTreeSet<Met>,
}

/// How many owners are in play at a time.
const OWNERS: usize = 7;

impl Author {
    /// What this seed makes up, for two locks and clients at these seats.
    pub fn new(seed: u64, names: Vec<LockName>, seats: Vec<Seat>) -> Self {
        let (dice, leases, met) = (Dice::new(seed), BTreeMap::new(), BTreeSet::new());
        let mut author = Self { dice, seats, names, claims: Vec::new(), leases, foreign: None, owners: 0, met };
        for _ in 0..OWNERS {
            let claim = author.claim();
            author.claims.extend(claim);
        }
        author
    }

    /// What the trace has met so far.
    pub fn met(&self) -> &BTreeSet<Met> {
        &self.met
    }

    fn claim(&mut self) -> Option<(Claim, Seat)> {
        self.owners += 1;
        let seat = self.dice.pick(&self.seats)?;
        let millis = self.dice.pick(&[150, 400, 3000, 12_000])?;
        let name = self.dice.pick(&self.names)?;
        let queueing = if seat == Seat::Unwanted { Queueing::Unwanted } else { Queueing::Wanted };
        let claim = Claim {
            name,
            owner: Owner::from_random(u128::to_be_bytes(u128::from(self.owners) << 64)),
            terms: Terms::exclusive(Ttl::new(Duration::from_millis(millis)).ok()?),
            width: Width::for_waiters(self.dice.from(1, 4)),
            floor: None,
            note: Note::from_wire("4711@here why not"),
            queueing,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        };
        Some((claim, seat))
    }

    /// The next step.
    pub fn step(&mut self) -> Step {
        let ask = match self.dice.from(0, 99) {
            0..50 => self.acquire(),
            50..59 => self.renew(),
            59..77 => self.release(),
            77..82 => self.lease().map(Ask::Fence),
            82..87 => self.lease().map(|lease| Ask::Revoke(lease.name, lease.tokens.high())),
            87..94 => return self.foreign(),
            94 => return Step::Dwell(self.dice.millis(50, 300)),
            _ => None,
        };
        ask.map_or_else(|| Step::Wait(self.dice.millis(0, 180)), Step::Ask)
    }

    fn acquire(&mut self) -> Option<Ask> {
        let index = self.dice.from(0, self.claims.len() - 1);
        if self.dice.chance(60) {
            self.claims[index] = self.claim()?;
        }
        let (mut claim, seat) = self.claims.get(index)?.clone();
        // Never above what was drawn, or the server's clock would decide.
        claim.floor = self.lease().filter(|_| self.dice.chance(300)).map(|lease| lease.tokens.high());
        Some(Ask::Acquire(claim, seat))
    }

    fn renew(&mut self) -> Option<Ask> {
        let first = self.lease()?;
        let more: Vec<_> = (0..self.dice.from(0, 2)).filter_map(|_| self.lease()).collect();
        let others = more.into_iter().filter(|lease| lease.name != first.name).take(1);
        Some(Ask::Renew([first.clone()].into_iter().chain(others).collect()))
    }

    fn release(&mut self) -> Option<Ask> {
        let (claim, _) = self.dice.pick(&self.claims)?;
        let certainty = if self.dice.chance(200) { Certainty::Unknown } else { Certainty::Answered };
        let evidence = if self.dice.chance(500) { Evidence::ValidHold } else { Evidence::Nothing };
        Some(Ask::Release(ReleaseRequest {
            name: claim.name,
            owner: claim.owner,
            terms: claim.terms,
            certainty,
            keep: None,
            evidence,
        }))
    }

    fn lease(&mut self) -> Option<Lease> {
        let recent: Vec<_> = self.leases.values().rev().take(OWNERS).cloned().collect();
        self.dice.pick(&recent)
    }

    fn foreign(&mut self) -> Step {
        if let Some((name, value)) = self.foreign.take() {
            return Step::ForeignDelete(name, value);
        }
        self.owners += 1;
        let Some(name) = self.dice.pick(&self.names) else { return Step::Wait(Duration::ZERO) };
        self.foreign = Some((name.clone(), self.owners));
        Step::ForeignSet(name, self.owners, self.dice.millis(50, 300))
    }

    /// Processes the answer to a step.
    pub fn heard(&mut self, said: &Said) {
        for (_, event) in &said.told {
            if let StoreEvent::Granted { lease, .. } = event {
                self.leases.insert(lease.owner, lease.clone());
                self.met.insert(Met::Told);
            }
        }
        if let Say::Acquire(Ok(Answer::Granted { lease, .. })) = &said.say {
            self.leases.insert(lease.owner, lease.clone());
        }
        self.met.extend(met_in(&said.say));
    }
}

/// The token of a grant, if there was one.
pub fn token_of(said: &Said) -> Option<FencingToken> {
    let Say::Acquire(Ok(Answer::Granted { lease, .. })) = &said.say else { return None };
    Some(lease.tokens.low())
}
