//! The author of a trace: it chooses each step from a seed and from the answers so far.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use lock_core::node::{Ask, Epoch, Membership, NodeState, Recording, Sighting, Told, View};
use lock_core::{
    BackendError, Certainty, Claim, Evidence, Fairness, FencingToken, Lease, LockName, NameKind, Note, Owner, Queueing,
    ReleaseRequest, Terms, TokenRange, Ttl, Width,
};

/// In microseconds.
const SECOND: u64 = 1_000_000;
/// How many owners are in play at a time, and how many leases are remembered.
const OWNERS: usize = 6;
const LEASES: usize = 12;

pub(super) fn names() -> Vec<LockName> {
    ["a", "invoice:42", "{b}:c"].map(|name| name.parse().unwrap()).into()
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Step {
    Ask(Ask),
    /// A lock's key is deleted behind the node's back.
    LoseKey(LockName),
    /// Something ends by the clock.
    Wait,
    /// The server is another run, with its data.
    Restart,
    /// The server is the same run, without its data.
    Forget,
}

pub(super) struct Author {
    dice: Rng,
    owners: u64,
    /// The one that the node had last.
    epoch: Epoch,
    claims: Vec<Claim>,
    /// What was granted, the latest last.
    leases: Vec<Lease>,
}

impl Author {
    pub(super) fn new(seed: u64) -> Self {
        let mut author = Self {
            dice: Rng::with_seed(seed),
            owners: 0,
            epoch: Epoch::from_random(0),
            claims: Vec::new(),
            leases: Vec::new(),
        };
        author.claims = (0..OWNERS).map(|_| author.claim()).collect();
        author
    }

    /// The next step, for a node that knows this of itself.
    pub(super) fn step(&mut self, seen: &View) -> Step {
        if let NodeState::Voting(epoch) | NodeState::Abstaining { epoch, .. } = seen.state {
            self.epoch = epoch;
        }
        match self.dice.u32(0..1000) {
            0..22 => Step::Forget,
            22..26 => Step::Restart,
            26..40 => Step::LoseKey(self.name()),
            40..70 => Step::Wait,
            _ => Step::Ask(self.ask(seen)),
        }
    }

    fn ask(&mut self, seen: &View) -> Ask {
        if !matches!(seen.state, NodeState::Voting(_)) && self.one_in(3) {
            return self.rise(seen);
        }
        match self.dice.u32(0..100) {
            0..40 => self.acquire(seen),
            40..65 => self.fence(),
            65..83 => self.release(),
            83..86 => Ask::Look,
            86..88 => self.mark(),
            88..92 => self.record(),
            92..96 => self.install(seen),
            _ => {
                let (membership, predecessor) = (self.membership(), self.membership());
                let as_seen = seen.deployment().cloned().map(Arc::new);
                let seen = if self.one_in(4) { Some(self.membership()) } else { as_seen };
                Ask::Move { epoch: self.epoch_or_any(2), seen, membership, predecessor, moves: self.dice.u64(0..3) }
            }
        }
    }

    /// What brings the node nearer to voting, or a look at what it lacks.
    fn rise(&mut self, seen: &View) -> Ask {
        match seen.state {
            _ if self.one_in(4) => Ask::Look,
            NodeState::Forgetful => self.mark(),
            NodeState::Abstaining { .. } | NodeState::Voting(_) => self.install(seen),
        }
    }

    fn acquire(&mut self, seen: &View) -> Ask {
        let index = self.dice.usize(..OWNERS);
        if self.one_in(8) {
            self.claims[index] = self.claim();
        }
        let (ttl, floor) = (self.ttl(), self.floor(seen));
        let claim = Arc::new(Claim { terms: Terms::exclusive(ttl), floor, ..self.claims[index].clone() });
        Ask::Acquire { claim, wish: self.wish(seen), epoch: self.epoch_or_any(15) }
    }

    fn claim(&mut self) -> Claim {
        self.owners += 1;
        Claim {
            name: self.name(),
            owner: Owner::from_random((u128::from(self.owners) << 64).to_be_bytes()),
            terms: Terms::exclusive(Ttl::DEFAULT),
            width: self.width(),
            floor: None,
            note: Note::new("here", u32::try_from(self.owners).unwrap(), "a: note").unwrap(),
            queueing: Queueing::Unwanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        }
    }

    fn wish(&mut self, seen: &View) -> FencingToken {
        let number = match self.dice.u32(0..10) {
            0..2 => 1,
            2..6 => self.around(seen.counter),
            6..8 => seen.clock.0 - SECOND + self.dice.u64(..2 * SECOND),
            8 => seen.clock.0 + 3600 * SECOND,
            _ => FencingToken::MAX.get(),
        };
        token(number)
    }

    fn floor(&mut self, seen: &View) -> Option<FencingToken> {
        let number = match self.dice.u32(0..30) {
            0..18 => return None,
            18..25 => self.around(seen.counter),
            25..28 => seen.clock.0 - SECOND + self.dice.u64(..3 * SECOND),
            28 => seen.clock.0 + 80_000 * SECOND,
            _ => FencingToken::MAX.get(),
        };
        Some(token(number))
    }

    /// Leases of one lock each.
    fn fence(&mut self) -> Ask {
        let mut names = names();
        self.dice.shuffle(&mut names);
        names.truncate(self.dice.usize(1..=3));
        let leases = names.into_iter().map(|name| self.lease_of(name)).collect();
        Ask::Fence { leases, epoch: self.epoch_or_any(15) }
    }

    /// A lease that was granted once, or committed under other tokens, or is long over, or nobody's. An owner's leases are
    /// all of one width.
    fn lease_of(&mut self, name: LockName) -> Lease {
        let known: Vec<_> = self.leases.iter().filter(|lease| lease.name == name).cloned().collect();
        let other = self.pick(&self.claims.clone());
        let asked = Claim { name, terms: Terms::exclusive(Ttl::DEFAULT), ..other.clone() };
        let nobodys = asked.lease(tokens(100, other.width));
        let latest = known.last().unwrap_or(&nobodys).clone();
        let known = if known.is_empty() || self.dice.bool() { latest } else { self.pick(&known) };
        let (high, width) = (known.tokens.high().get(), width_of(known.tokens));
        let lease = Lease { terms: Terms::exclusive(self.ttl()), ..known };
        match self.dice.u32(0..400) {
            0..200 => lease,
            200..270 => Lease { tokens: tokens(high + self.dice.u64(..8), width), ..lease },
            270..335 => Lease { tokens: tokens(high.saturating_sub(self.dice.u64(1..8)), width), ..lease },
            335..396 => Lease { owner: other.owner, tokens: tokens(high, other.width), ..lease },
            _ => Lease { tokens: tokens(FencingToken::MAX.get(), width), ..lease },
        }
    }

    fn release(&mut self) -> Ask {
        let claim = self.pick(&self.claims.clone());
        let certainty = if self.one_in(4) { Certainty::Unknown } else { Certainty::Answered };
        Ask::Release(Arc::new(ReleaseRequest {
            name: claim.name,
            owner: claim.owner,
            terms: Terms::exclusive(self.ttl()),
            certainty,
            keep: None,
            evidence: Evidence::Nothing,
        }))
    }

    fn record(&mut self) -> Ask {
        let keep = if self.dice.bool() { Duration::from_millis(100) } else { Duration::from_secs(600) };
        let seen = (0..self.dice.usize(1..4)).map(|_| self.sighting()).collect();
        Ask::Record { seen, keep }
    }

    fn sighting(&mut self) -> Sighting {
        let recording = match self.dice.u32(0..6) {
            0 => Recording::Nothing,
            1 => Recording::BeginsAnew(self.any_epoch()),
            _ => Recording::Begins(self.any_epoch()),
        };
        Sighting { member: format!("node-{}:7001", self.dice.u32(0..3)), recording }
    }

    fn mark(&mut self) -> Ask {
        Ask::Mark { epoch: self.any_epoch(), membership: self.membership() }
    }

    fn install(&mut self, seen: &View) -> Ask {
        let counter = if self.one_in(3) { seen.clock.0 + 500_000 } else { self.around(seen.counter) };
        let longest = self.ttl().get();
        Ask::Install {
            moves: self.dice.u64(0..3),
            epoch: self.epoch_or_any(4),
            counter,
            longest,
            membership: self.membership(),
        }
    }

    fn membership(&mut self) -> Arc<Membership> {
        let members = (0..self.dice.usize(1..4)).map(|index| format!("node-{index}:7001")).collect();
        Arc::new(Membership { members, max_ttl: self.ttl().get() })
    }

    /// The epoch that the node has or had, and one in so many times any.
    fn epoch_or_any(&mut self, often: u32) -> Epoch {
        if self.one_in(often) { self.any_epoch() } else { self.epoch }
    }

    fn any_epoch(&mut self) -> Epoch {
        Epoch::from_random(self.dice.u64(..4))
    }

    /// So short that it ends while the trace is played, or so long that it does not.
    fn ttl(&mut self) -> Ttl {
        let millis = if self.one_in(5) { self.dice.u64(100..150) } else { self.dice.u64(60_000..600_000) };
        Ttl::new(Duration::from_millis(millis)).unwrap()
    }

    fn width(&mut self) -> Width {
        Width::for_waiters(if self.dice.bool() { 1 } else { self.dice.usize(1..=64) })
    }

    fn around(&mut self, number: u64) -> u64 {
        (number + self.dice.u64(..20)).saturating_sub(5).min(FencingToken::MAX.get())
    }

    fn name(&mut self) -> LockName {
        self.pick(&names())
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.dice.usize(..all.len())].clone()
    }

    fn one_in(&mut self, often: u32) -> bool {
        self.dice.u32(..often) == 0
    }

    /// Takes in what was answered.
    pub(super) fn heard(&mut self, ask: &Ask, told: &Result<Told, BackendError>) {
        let (Ask::Acquire { claim, .. }, Ok(Told::Granted { token, .. })) = (ask, told) else { return };
        let tokens = tokens(token.get(), claim.width);
        self.leases.push(claim.lease(tokens));
        if self.leases.len() > LEASES {
            self.leases.remove(0);
        }
    }
}

/// The token of this number, or of the nearest that is one.
fn token(number: u64) -> FencingToken {
    FencingToken::new(number.clamp(1, FencingToken::MAX.get())).unwrap()
}

/// The tokens that end with this one.
fn tokens(high: u64, width: Width) -> TokenRange {
    let high = token(high);
    TokenRange::new(token((high.get() + 1).saturating_sub(width.get())), high).unwrap()
}

fn width_of(tokens: TokenRange) -> Width {
    Width::for_waiters(usize::try_from(tokens.high().get() - tokens.low().get() + 1).unwrap())
}
