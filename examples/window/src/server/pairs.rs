//! Every pair of requests, interleaved in every way: both are answered, and leave the rows, as if one had come after the other.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::limit::{self, Act};
use lock_core::{
    Answer, BackendError, Certainty, Claim, EventSink, Fairness, Lease, Limit, LockName, Mode, Moment, NameKind, Note,
    Owner, Queueing, ReleaseRequest, Renewed, StoreEvent, Terms, Ttl, Width,
};
use lock_host::{Clock, SharedClock};
use lock_rules::window::{self, Commit, Request, Step};

use lock_rules::Hold;

use super::{ClientId, Lock, Server};
use crate::network::Remote;

/// What a store does not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    Nothing,
    Version,
    Tail,
    OwnLeases,
    ExpiredLeases,
    Clock,
}

impl Flaw {
    /// The commit, without what the store does not compare.
    fn spoil(self, now: Moment, mut commit: Commit<ClientId>) -> Commit<ClientId> {
        match self {
            Self::Nothing => {}
            Self::Version => commit.version = None,
            Self::Tail => commit.tail = None,
            Self::OwnLeases => commit.leases.retain(|lease| lease.until <= now),
            Self::ExpiredLeases => commit.leases.retain(|lease| now < lease.until),
            Self::Clock => commit.before = None,
        }
        commit
    }
}

/// The client that makes all requests.
const CLIENT: ClientId = 1;

/// A request about the lock.
#[derive(Clone, Debug)]
enum Ask {
    Acquire(Claim),
    Release(ReleaseRequest),
    Renew(Lease),
    Revoke(Lease, Note),
    Limit(limit::Request),
}

impl Ask {
    fn owner(&self) -> Option<Owner> {
        match self {
            Self::Acquire(claim) => Some(claim.owner),
            Self::Release(request) => Some(request.owner),
            Self::Renew(lease) | Self::Revoke(lease, _) => Some(lease.owner),
            Self::Limit(_) => None,
        }
    }

    /// Whether this is a release that says that the other one, a claim, was answered: so they do not overlap.
    fn ends(&self, other: &Self) -> bool {
        let (Self::Release(release), Self::Acquire(claim)) = (self, other) else { return false };
        release.certainty == Certainty::Answered && [Some(claim.owner), claim.replaces].contains(&Some(release.owner))
    }
}

/// An answer, with the end that it promises.
type Said = String;

/// A request in flight: takes one step, and returns the answer after the last one. A load reads the rows in one step, and the clock in the
/// next one.
type Running<'a> = Box<dyn FnMut() -> Option<Said> + 'a>;

fn begin<'a>(ask: &'a Ask, server: &'a Server, flaw: Flaw) -> Running<'a> {
    match ask {
        Ask::Acquire(claim) => running(server, flaw, window::acquire(CLIENT, claim), acquired),
        Ask::Release(request) => running(server, flaw, window::release(request), debug),
        Ask::Renew(lease) => running(server, flaw, window::renew(lease), |answer, now| match answer {
            Ok(Renewed::Renewed { valid_for, .. }) => format!("renewed until {:?}", now + valid_for),
            other => debug(other, now),
        }),
        Ask::Revoke(lease, by) => running(server, flaw, window::revoke(&lease.name, lease.tokens.high(), by), debug),
        Ask::Limit(request) => running(server, flaw, window::limit(request), debug),
    }
}

fn running<'a, T: 'a>(
    server: &'a Server,
    flaw: Flaw,
    mut request: Request<'a, Remote, T>,
    show: fn(Result<T, BackendError>, Moment) -> Said,
) -> Running<'a> {
    let (mut next, mut now, mut rows) = (Some(request.begin()), Moment::ORIGIN, None);
    Box::new(move || {
        let step = match next.take()? {
            Step::Load(needs) => match rows.take() {
                None => {
                    rows = Some(server.tables().locks.entry(name()).or_default().clone());
                    Step::Load(needs)
                }
                Some(rows) => {
                    now = server.clock.now();
                    request.loaded(Lock::load(&rows, now, needs))
                }
            },
            Step::Commit(commit) => request.committed(server.commit(&name(), flaw.spoil(server.clock.now(), commit))),
            done @ Step::Done(_) => done,
        };
        match step {
            Step::Done(answer) => Some(show(answer, now)),
            step @ (Step::Load(_) | Step::Commit(_)) => {
                next = Some(step);
                None
            }
        }
    })
}

fn debug<T: Debug>(answer: Result<T, BackendError>, _now: Moment) -> Said {
    format!("{answer:?}")
}

fn acquired(answer: Result<Answer, BackendError>, now: Moment) -> Said {
    match answer {
        Ok(Answer::Granted { lease, valid_for, wanted }) => {
            format!("granted {:?} {:?} until {:?} {wanted}", lease.tokens, lease.slots, now + valid_for)
        }
        Ok(Answer::Queued { position, valid_for, .. }) => format!("queued {position} until {:?}", now + valid_for),
        Ok(Answer::Busy { .. }) => "busy".to_owned(),
        Err(error) => debug::<()>(Err(error), now),
    }
}

fn name() -> LockName {
    "a".parse().unwrap()
}

/// When a scene is played, and the two moments of a pair: in seconds.
const SCENE: u64 = 10;
const EARLY: u64 = 12;
const LATE: u64 = 16;
/// Ttls. A short lease of the scene has ended at the later moment, unless it was renewed at the earlier one.
const LONG: u64 = 30;
const SHORT: u64 = 5;

fn claim(byte: u8, mode: Mode, seconds: u64) -> Claim {
    Claim {
        name: name(),
        owner: Owner::from_random([byte; 16]),
        terms: Terms { mode, ttl: Ttl::new(Duration::from_secs(seconds)).unwrap() },
        width: Width::for_waiters(usize::try_from(mode.count()).unwrap()),
        floor: None,
        note: Note::from_wire("1@here"),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

fn permits(count: u32) -> Mode {
    Mode::permits(count, 3).unwrap()
}

/// What came before: claims, of which those of the first owners are granted.
fn scenes() -> Vec<(&'static str, Vec<Claim>)> {
    let (exclusive, shared) = (Mode::Exclusive, Mode::Shared);
    vec![
        ("free", vec![]),
        ("held", vec![claim(1, exclusive, LONG)]),
        ("held, with waiters", vec![claim(1, exclusive, LONG), claim(2, exclusive, LONG), claim(3, shared, LONG)]),
        (
            "held, with a waiter for a short time",
            vec![claim(1, exclusive, LONG), claim(2, exclusive, SHORT), claim(3, exclusive, LONG)],
        ),
        ("held for a short time", vec![claim(1, exclusive, SHORT), claim(2, exclusive, LONG)]),
        ("two readers", vec![claim(1, shared, LONG), claim(2, shared, SHORT)]),
        ("a reader for a short time", vec![claim(1, shared, SHORT)]),
        ("readers and waiters", vec![claim(1, shared, LONG), claim(2, exclusive, LONG), claim(3, shared, LONG)]),
        ("permits", vec![claim(1, permits(2), LONG), claim(2, permits(1), SHORT)]),
        (
            "permits and waiters",
            vec![claim(1, permits(2), LONG), claim(2, permits(2), LONG), claim(3, permits(1), LONG)],
        ),
    ]
}

/// Everything that can be asked in a scene.
fn asks(before: &[Claim], leases: &[Lease]) -> Vec<Ask> {
    let is_semaphore = before.first().is_some_and(|claim| claim.terms.mode.limit().is_some());
    let modes = if is_semaphore { vec![permits(1), permits(3)] } else { vec![Mode::Exclusive, Mode::Shared] };
    let mut asks = Vec::new();
    for mode in modes {
        let new = claim(7, mode, LONG);
        asks.push(Ask::Acquire(Claim { queueing: Queueing::Unwanted, ..new.clone() }));
        asks.push(Ask::Acquire(Claim {
            fairness: Fairness::Barging,
            owner: Owner::from_random([8; 16]),
            ..new.clone()
        }));
        if let Some(held) = leases.first() {
            let owner = Owner::from_random([9; 16]);
            asks.push(Ask::Acquire(Claim { owner, replaces: Some(held.owner), ..new.clone() }));
        }
        asks.push(Ask::Release(new.release(Certainty::Unknown)));
        asks.push(Ask::Acquire(new));
    }
    for claim in before {
        let release = claim.release(Certainty::Answered);
        asks.push(Ask::Acquire(claim.clone()));
        asks.push(Ask::Release(claim.release(Certainty::Unknown)));
        if claim.terms.mode == Mode::Exclusive {
            asks.push(Ask::Release(ReleaseRequest { keep: Some(Duration::from_secs(SHORT)), ..release.clone() }));
        }
        asks.push(Ask::Release(release));
    }
    asks.extend(
        leases
            .iter()
            .cloned()
            .flat_map(|lease| [Ask::Renew(lease.clone()), Ask::Revoke(lease, Note::from_wire("1@ops"))]),
    );
    if is_semaphore {
        let [known, set] = [3, 2].map(|limit| Limit::new(limit).unwrap());
        asks.push(Ask::Limit(limit::Request { name: name(), known, act: Act::Set(set) }));
    }
    asks
}

/// A clock that is set by hand, in seconds.
#[derive(Debug)]
struct Hand(AtomicU64);

impl Hand {
    fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Moment {
        Moment::ORIGIN + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// A server on which a scene was played.
struct Stage {
    clock: Arc<Hand>,
    server: Server,
    /// What the client was notified of.
    events: Arc<Mutex<Vec<StoreEvent>>>,
}

impl Stage {
    fn new(before: &[Claim]) -> Self {
        let (clock, events) = (Arc::new(Hand(SCENE.into())), Arc::<Mutex<Vec<StoreEvent>>>::default());
        let server = Server::new(Arc::clone(&clock) as SharedClock);
        let (stage, heard) = (Self { server, clock, events: Arc::clone(&events) }, events);
        let (client, listeners) = stage.server.connect();
        assert_eq!(client, CLIENT);
        listeners.add(EventSink::new(move |event| heard.lock().unwrap().push(event)));
        before.iter().for_each(|claim| stage.finish(&Ask::Acquire(claim.clone())));
        stage.clock.set(EARLY);
        stage
    }

    fn finish(&self, ask: &Ask) {
        let mut running = begin(ask, &self.server, Flaw::Nothing);
        while running().is_none() {}
    }

    fn leases(&self, before: &[Claim]) -> Vec<Lease> {
        let tables = self.server.tables();
        let Some(lock) = tables.locks.get(&name()) else { return Vec::new() };
        let held = before.iter().filter_map(|claim| Some((claim, lock.holds.get(&claim.owner)?)));
        held.map(|(claim, hold)| claim.lease_of(hold.tokens, hold.slots.clone())).collect()
    }

    /// The rows at the end, and what was pushed.
    fn rows(&self) -> String {
        let tables = self.server.tables();
        let (lock, now) = (&tables.locks[&name()], self.clock.now());
        let mut holds: Vec<&Hold> = lock.holds.values().filter(|hold| now < hold.until).collect();
        holds.sort_unstable_by_key(|hold| hold.owner);
        let expired = lock.holds.values().filter(|hold| hold.until <= now).map(|hold| hold.mode.count());
        let permits = lock.permits.checked_sub(expired.sum()).expect("expired permits are counted");
        let places: Vec<_> = lock.places.values().filter(|place| now < place.until).collect();
        let mut given_up: Vec<_> = lock.given_up.iter().collect();
        given_up.sort_unstable();
        let limit = lock.limit.as_ref().map(|(record, _)| record);
        let (token, events) = (lock.last_token, self.events.lock().unwrap());
        assert_eq!(permits, holds.iter().map(|hold| hold.mode.count()).sum::<u32>(), "permits that nobody has");
        format!("{holds:?}, {places:?}, {given_up:?}, {limit:?}, token {token}, {:?}, {events:?}", lock.revoked)
    }
}

/// Who goes on, one step after the other; afterwards, the first one does to its end, and then the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    First,
    Second,
    /// The clock shows the later moment, or the earlier one again.
    Late,
    Early,
    /// The first one is interrupted: it never goes on.
    Crash,
}

/// How a pair ended: the answers that were received, and the rows.
type Outcome = ([Option<Said>; 2], String);

fn play(before: &[Claim], pair: [&Ask; 2], schedule: &[Next], flaw: Flaw) -> Outcome {
    let stage = Stage::new(before);
    let mut running = pair.map(|ask| Some(begin(ask, &stage.server, flaw)));
    let mut said = [None, None];
    let mut step = |index: usize, running: &mut [Option<Running<'_>>; 2]| {
        let Some(request) = &mut running[index] else { return false };
        if let Some(answer) = request() {
            (said[index], running[index]) = (Some(answer), None);
        }
        true
    };
    for next in schedule {
        match next {
            Next::First => _ = step(0, &mut running),
            Next::Second => _ = step(1, &mut running),
            Next::Late => stage.clock.set(LATE),
            Next::Early => stage.clock.set(EARLY),
            Next::Crash => running[0] = None,
        }
    }
    for index in [0, 1] {
        while step(index, &mut running) {}
    }
    drop(running);
    (said, stage.rows())
}

/// Three steps of each, which is a load and a commit, in any order. Somewhere between them the clock moves, or the first request is interrupted.
fn schedules(between: Option<Next>) -> Vec<Vec<Next>> {
    let turns = |bits: u8| (0..6).map(move |bit| if bits >> bit & 1 == 0 { Next::First } else { Next::Second });
    let orders = (0..64_u8).filter(|bits| bits.count_ones() == 3).map(|bits| turns(bits).collect::<Vec<_>>());
    let Some(between) = between else { return orders.collect() };
    let insert = |order: Vec<Next>| {
        (1..6).map(move |at| {
            let mut schedule = order.clone();
            schedule.insert(at, between);
            schedule
        })
    };
    orders.flat_map(insert).collect()
}

/// How a pair may end: as one after the other, before or after the clock moves. Requests that overlap may have read the clock in the other
/// order if they are about different owners, as long as what they acted on has not expired. A request that is interrupted has taken
/// effect or not.
fn serial(before: &[Claim], pair: [&Ask; 2], between: Option<Next>) -> Vec<Outcome> {
    let (first, second) = (&[Next::First; 12][..], &[Next::Second; 12][..]);
    let whole = |order: &[&[Next]]| play(before, pair, &order.concat(), Flaw::Nothing);
    let (early, late) = (&[Next::Early][..], &[Next::Late][..]);
    let moved = |[one, other]: [&[Next]; 2]| match between {
        Some(Next::Late) => {
            let orders: [&[&[Next]]; 4] =
                [&[late, one, other], &[one, late, other], &[one, other, late], &[late, one, early, other, late]];
            let possible = if pair[0].owner() == pair[1].owner() { 3 } else { 4 };
            orders.into_iter().take(possible).map(whole).collect()
        }
        _ => vec![whole(&[one, other])],
    };
    let mut outcomes: Vec<Outcome> = [[first, second], [second, first]].into_iter().flat_map(moved).collect();
    if between == Some(Next::Crash) {
        outcomes.push(whole(&[&[Next::Crash], second]));
        let unheard = outcomes.clone().into_iter().map(|([_, second], rows)| ([None, second], rows));
        outcomes.extend(unheard.collect::<Vec<_>>());
    }
    outcomes
}

/// The first pair that ends as no order of its requests does.
fn find_wrong(flaw: Flaw) -> Option<String> {
    for (scene, before) in scenes() {
        let asks = asks(&before, &Stage::new(&before).leases(&before));
        let pairs = asks.iter().flat_map(|first| asks.iter().map(move |second| [first, second]));
        for pair in pairs.filter(|[first, second]| !first.ends(second) && !second.ends(first)) {
            for between in [None, Some(Next::Late), Some(Next::Crash)] {
                let expected = serial(&before, pair, between);
                for schedule in schedules(between) {
                    let outcome = play(&before, pair, &schedule, flaw);
                    if !expected.contains(&outcome) {
                        return Some(format!(
                            "{scene}: {pair:#?}\n{schedule:?} ended as {outcome:#?},\nnot as one of {expected:#?}"
                        ));
                    }
                }
            }
        }
    }
    None
}

#[test]
fn requests_that_interleave_end_as_one_after_the_other() {
    if let Some(wrong) = find_wrong(Flaw::Nothing) {
        panic!("{wrong}");
    }
}

#[test]
fn a_store_that_does_not_compare_what_a_commit_depends_on_is_found() {
    for flaw in [Flaw::Version, Flaw::Tail, Flaw::OwnLeases, Flaw::ExpiredLeases, Flaw::Clock] {
        assert!(find_wrong(flaw).is_some(), "{flaw:?} was not compared");
    }
}
