//! A request costs the same among ten leases or waiters and among ten thousand. What is counted are the rows that it looks at.

use lock_core::{
    Answer, Certainty, Claim, Fairness, Mode, Moment, NameKind, Note, Owner, Queueing, Renewed, Terms, Ttl, Width,
};

use crate::store::{ClientId, Store};
use crate::visits::visited;

/// A position is counted up to the 32nd, also of the place in the middle; and a hand-over to readers serves as many.
const FEW: u32 = 80;
const MANY: u32 = 10_000;

/// Far above all that a test asks for.
const LIMIT: u32 = 100_000;

fn permits(count: u32, limit: u32) -> Mode {
    Mode::permits(count, limit).unwrap()
}

/// A claim of this owner that wants a place.
fn claim(owner: u32, mode: Mode) -> Claim {
    let mut bytes = [7; 16];
    bytes[..4].copy_from_slice(&owner.to_be_bytes());
    Claim {
        name: "a".parse().unwrap(),
        owner: Owner::from_random(bytes),
        terms: Terms { mode, ttl: Ttl::DEFAULT },
        width: Width::for_waiters(usize::try_from(mode.count()).unwrap()),
        floor: None,
        note: Note::from_wire("1@h"),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

/// A store, and the rows that its requests look at.
#[derive(Default)]
struct Rig {
    store: Store,
    owners: u32,
}

impl Rig {
    /// The claim of a new owner.
    fn claim(&mut self, mode: Mode) -> Claim {
        self.owners += 1;
        claim(self.owners, mode)
    }

    /// The claims of new owners, which are answered.
    fn fill(&mut self, count: u32, mode: Mode) -> Vec<Claim> {
        let claims: Vec<_> = (0..count).map(|_| self.claim(mode)).collect();
        claims.iter().for_each(|claim| _ = self.ask(claim));
        claims
    }

    fn ask(&mut self, claim: &Claim) -> Answer {
        self.store.acquire(Moment::ORIGIN, ClientId::new(1), claim).unwrap()
    }

    fn acquire(&mut self, claim: &Claim) -> u64 {
        visited(|| _ = self.ask(claim))
    }

    fn at_once(&mut self, claim: Claim) -> u64 {
        self.acquire(&Claim { queueing: Queueing::Unwanted, ..claim })
    }

    fn release(&mut self, claim: &Claim, certainty: Certainty) -> u64 {
        visited(|| _ = self.store.release(Moment::ORIGIN, &claim.release(certainty)).unwrap())
    }

    fn renew(&mut self, claim: &Claim) -> u64 {
        let Answer::Granted { lease, .. } = self.ask(claim) else { panic!("it is not held") };
        let mut answers = Vec::new();
        let rows = visited(|| answers = self.store.renew(Moment::ORIGIN, &[lease]));
        assert!(matches!(answers[..], [Renewed::Renewed { .. }]));
        rows
    }
}

type Costs = Vec<(&'static str, u64)>;

/// Every fifth lease has ended, so that free slots lie among taken ones.
fn among_permits(count: u32) -> Costs {
    let mut rig = Rig::default();
    let all = rig.fill(count, permits(1, LIMIT));
    all.iter().step_by(5).for_each(|claim| _ = rig.release(claim, Certainty::Unknown));
    let held = &all[all.len() / 2 + 1 + usize::from(all.len() / 2 % 5 == 4)];
    let (one, three) = (rig.claim(permits(1, LIMIT)), rig.claim(permits(3, LIMIT)));
    vec![
        ("a claim for a permit", rig.acquire(&one)),
        ("the same claim again", rig.acquire(&one)),
        ("a claim for three permits", rig.acquire(&three)),
        ("their release", rig.release(&three, Certainty::Answered)),
        ("a renewal", rig.renew(held)),
        ("a release", rig.release(held, Certainty::Answered)),
    ]
}

/// So many holders, and behind them so many waiters.
fn among_waiters([holders, waiters]: [u32; 2], held: Mode, wanted: Mode) -> Costs {
    let mut rig = Rig::default();
    let (holders, waiters) = (rig.fill(holders, held), rig.fill(waiters, wanted));
    assert!(matches!(rig.ask(&waiters[0]), Answer::Queued { position: 1, .. }));
    let (new, middle) = (rig.claim(wanted), waiters[waiters.len() / 2].clone());
    vec![
        ("a claim that is put off", rig.at_once(new.clone())),
        ("a claim that takes a place", rig.acquire(&new)),
        ("the refresh of a place", rig.acquire(&middle)),
        ("the end of a place", rig.release(&middle, Certainty::Unknown)),
        ("a renewal", rig.renew(&holders[0])),
        ("a hand-over", rig.release(&holders[0], Certainty::Answered)),
    ]
}

#[track_caller]
fn compare(few: Costs, many: Costs) {
    assert!(many.iter().any(|(_, rows)| *rows > 0), "nothing was counted");
    assert_eq!(many, few, "the rows that requests look at among {MANY}, and among {FEW}");
}

#[test]
fn a_permit_costs_the_same_among_many() {
    compare(among_permits(FEW), among_permits(MANY));
}

#[test]
fn a_place_costs_the_same_among_many() {
    for (held, wanted) in [(Mode::Exclusive, Mode::Exclusive), (Mode::Exclusive, Mode::Shared)] {
        compare(among_waiters([1, FEW], held, wanted), among_waiters([1, MANY], held, wanted));
    }
    let readers = |count| among_waiters([count, count], Mode::Shared, Mode::Exclusive);
    compare(readers(FEW), readers(MANY));
    let holders = |count| among_waiters([count, count], permits(1, count), permits(1, count));
    compare(holders(FEW), holders(MANY));
}
