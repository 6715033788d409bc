//! A request costs the same among ten leases or waiters and among ten thousand. What is counted are the steps of SQLite's virtual machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::{Fairness, NameKind, Owner, Queueing, Terms, Ttl, Width};
use lock_host::ManualClock;
use lock_rules::position;

use super::*;
use crate::settings::Settings;
use crate::store::Store;
use crate::{SqliteConfig, Timing};

const FEW: u64 = 10;
/// A position is counted up to the 32nd, and a hand-over to readers serves as many.
const FEW_PLACES: u64 = 64;
const MANY: u64 = 10_000;

/// Far above all that a test asks for.
const LIMIT: u64 = 100_000;

/// A file, and the steps of its statements.
struct Rig {
    store: Store,
    settings: Arc<Settings>,
    clock: ManualClock,
    steps: Arc<AtomicU64>,
    owners: u64,
    _directory: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let config = SqliteConfig::new(directory.path().join("locks.db"));
        let settings = Arc::new(Settings::new(&config, Timing::with_clock(Arc::new(clock.clone()))));
        let mut store = Store::unopened(Arc::clone(&settings));
        store.open().unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&steps);
        let count = move || {
            seen.fetch_add(1, Ordering::Relaxed);
            false
        };
        store.connection().progress_handler(1, Some(count)).unwrap();
        Self { store, settings, clock, steps, owners: 0, _directory: directory }
    }

    /// A claim of a new owner that wants a place.
    fn claim(&mut self, mode: Mode) -> Claim {
        self.owners += 1;
        let mut bytes = [7; 16];
        bytes[..8].copy_from_slice(&self.owners.to_be_bytes());
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

    /// The claims of new owners, with their answers.
    fn fill(&mut self, count: u64, mode: Mode) -> Vec<(Claim, Answer)> {
        let claims: Vec<Claim> = (0..count).map(|_| self.claim(mode)).collect();
        self.commit(|transaction| {
            claims.into_iter().map(|claim| (claim.clone(), transaction.acquire(&claim).unwrap())).collect()
        })
    }

    fn commit<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> T) -> T {
        let db = self.store.connection();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        let done = work(&Transaction::new(db, &self.settings));
        db.execute_batch("COMMIT").unwrap();
        done
    }

    fn steps_of<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> T) -> (u64, T) {
        let before = self.steps.load(Ordering::Relaxed);
        let done = self.commit(work);
        (self.steps.load(Ordering::Relaxed) - before, done)
    }

    /// The steps of a request that is repeated with other claims. Some requests sweep as well: those count more.
    fn least(&mut self, claims: &[Claim], request: impl Fn(&Transaction<'_>, &Claim)) -> u64 {
        claims.iter().map(|claim| self.steps_of(|transaction| request(transaction, claim)).0).min().unwrap()
    }

    fn new_claims(&mut self, mode: Mode) -> Vec<Claim> {
        (0..4).map(|_| self.claim(mode)).collect()
    }
}

fn permits(count: u64, limit: u64) -> Mode {
    Mode::permits(u32::try_from(count).unwrap(), u32::try_from(limit).unwrap()).unwrap()
}

fn acquire(transaction: &Transaction<'_>, claim: &Claim) {
    transaction.acquire(claim).unwrap();
}

fn at_once(transaction: &Transaction<'_>, claim: &Claim) {
    transaction.acquire(&Claim { queueing: Queueing::Unwanted, ..claim.clone() }).unwrap();
}

fn release(transaction: &Transaction<'_>, claim: &Claim) {
    transaction.release(&claim.release(Certainty::Answered)).unwrap();
}

fn renew(transaction: &Transaction<'_>, claim: &Claim) {
    let lease = transaction.rows(&claim.name).hold(claim.owner).unwrap().unwrap();
    let lease = Lease {
        name: claim.name.clone(),
        owner: claim.owner,
        tokens: lease.tokens,
        slots: lease.slots,
        terms: claim.terms,
    };
    assert!(matches!(transaction.renew(&[lease]).unwrap()[..], [Renewed::Renewed { .. }]));
}

/// What a look of the watcher does for a waiter.
fn look(transaction: &Transaction<'_>, claim: &Claim) {
    let mut rows = transaction.rows(&claim.name);
    let place = rows.place(claim.owner).unwrap().unwrap();
    rows.next_place(0).unwrap();
    position(&mut rows, place.number).unwrap();
    lock_rules::fits_at(&mut rows, &claim.name, claim.terms.mode).unwrap();
}

/// Those in the middle, who have neighbours.
fn middle(all: &[(Claim, Answer)]) -> Vec<Claim> {
    all[all.len() / 2..][..4].iter().map(|(claim, _)| claim.clone()).collect()
}

/// Every fifth lease has ended, so that free slots lie among taken ones.
fn among_permits(count: u64) -> Vec<(&'static str, u64)> {
    let mut rig = Rig::new();
    let (one, three) = (permits(1, LIMIT), permits(3, LIMIT));
    let all = rig.fill(count, one);
    rig.commit(|transaction| all.iter().step_by(5).for_each(|(claim, _)| release(transaction, claim)));
    let held: Vec<Claim> = all[all.len() / 2 + 1..][..4].iter().map(|(claim, _)| claim.clone()).collect();
    let (news, wide) = (rig.new_claims(one), rig.new_claims(three));
    vec![
        ("a claim for a permit", rig.least(&news, acquire)),
        ("the same claim again", rig.least(&news, acquire)),
        ("a renewal", rig.least(&held, renew)),
        ("a release", rig.least(&held, release)),
        ("a claim for three permits", rig.least(&wide, acquire)),
        ("their release", rig.least(&wide, release)),
    ]
}

/// The leases that hold the lock, and as many waiters as are counted.
fn among_waiters(count: u64, holders: u64, held: Mode, wanted: Mode) -> Vec<(&'static str, u64)> {
    let mut rig = Rig::new();
    let (holders, waiters) = (rig.fill(holders, held), rig.fill(count, wanted));
    assert!(waiters.iter().all(|(_, answer)| matches!(answer, Answer::Queued { .. })));
    let holders: Vec<Claim> = holders.into_iter().map(|(claim, _)| claim).collect();
    let (news, middle) = (rig.new_claims(wanted), middle(&waiters));
    vec![
        ("a claim that is put off", rig.least(&news, at_once)),
        ("a claim that takes a place", rig.least(&news, acquire)),
        ("a look", rig.least(&middle, look)),
        ("the refresh of a place", rig.least(&middle, acquire)),
        ("the end of a place", rig.least(&middle, release)),
        ("a renewal", rig.least(&holders[holders.len() / 2..][..1], renew)),
        ("a hand-over", rig.least(&holders[..holders.len().min(4)], release)),
    ]
}

#[track_caller]
fn compare(few: Vec<(&'static str, u64)>, many: Vec<(&'static str, u64)>) {
    for ((request, few), (_, many)) in few.into_iter().zip(many) {
        assert!(2 * many < 3 * few, "{request} takes {few} steps among few, and {many} among many");
    }
}

#[test]
fn a_permit_costs_the_same_among_many() {
    compare(among_permits(FEW), among_permits(MANY));
}

#[test]
fn a_place_costs_the_same_among_many_that_wait_for_permits() {
    let waiting = |count| among_waiters(count, count, permits(1, count), permits(1, count));
    compare(waiting(FEW_PLACES), waiting(MANY));
}

#[test]
fn a_place_costs_the_same_among_many_writers_and_readers() {
    for (held, wanted) in [(Mode::Exclusive, Mode::Exclusive), (Mode::Exclusive, Mode::Shared)] {
        let waiting = |count| among_waiters(count, 1, held, wanted);
        compare(waiting(FEW_PLACES), waiting(MANY));
    }
    let readers = |count| among_waiters(count, count, Mode::Shared, Mode::Exclusive);
    compare(readers(FEW_PLACES), readers(MANY));
}

#[test]
fn what_has_expired_is_paid_for_once() {
    let after = |count: u64| {
        let mut rig = Rig::new();
        rig.fill(count, permits(1, count));
        rig.fill(count, permits(1, count));
        rig.clock.advance(Ttl::DEFAULT.get() / 2);
        let held = permits(1, count);
        let news = rig.new_claims(held);
        // The places have expired.
        rig.steps_of(|transaction| at_once(transaction, &news[0]));
        let waiting = ("a claim after the waiters", rig.least(&news, at_once));
        rig.clock.advance(Ttl::DEFAULT.get() / 2);
        let cleared = rig.steps_of(|transaction| acquire(transaction, &news[0])).0;
        [waiting, ("a claim after the leases", rig.least(&news, acquire)), ("all", cleared)]
    };
    let (few, many) = (after(FEW), after(MANY));
    compare(few[..2].to_vec(), many[..2].to_vec());
    assert!(many[2].1 > MANY);
}
