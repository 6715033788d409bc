//! Every pair of requests, interleaved in every way: both are answered, and leave the rows, as if one had come after the other.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_core::limit::{self, Act};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Fairness, Lease, Limit, LockName, Mode, Moment, Note, Owner, Queueing,
    ReleaseRequest, Renewed, Terms, Ttl, Width,
};
use lock_host::{Clock, SharedClock};
use lock_rules::window::{self, Commit, Request, Step};

use super::{ClientId, Server};
use crate::network::Remote;

/// What a store does not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    Nothing,
    Version,
    Tail,
    Ends,
}

impl Flaw {
    fn spoil(self, mut commit: Commit<ClientId>) -> Commit<ClientId> {
        match self {
            Self::Nothing => {}
            Self::Version => commit.version = None,
            Self::Tail => commit.tail = None,
            Self::Ends => commit.ends.clear(),
        }
        commit
    }
}

/// A request about the lock.
#[derive(Clone, Debug)]
enum Ask {
    Acquire(Claim),
    Release(ReleaseRequest),
    Renew(Lease),
    Revoke(Lease, Note),
    Limit(limit::Request),
}

/// An answer, without times.
type Said = String;

/// A request under way: takes one step, and returns the answer after the last one.
type Running<'a> = Box<dyn FnMut() -> Option<Said> + 'a>;

fn begin<'a>(ask: &'a Ask, server: &'a Server, flaw: Flaw) -> Running<'a> {
    match ask {
        Ask::Acquire(claim) => running(server, flaw, window::acquire(1, claim), acquired),
        Ask::Release(request) => running(server, flaw, window::release(request), debug),
        Ask::Renew(lease) => running(server, flaw, window::renew(lease), |answer| match answer {
            Ok(Renewed::Renewed { .. }) => "renewed".to_owned(),
            other => debug(other),
        }),
        Ask::Revoke(lease, by) => running(server, flaw, window::revoke(&lease.name, lease.tokens.high(), by), debug),
        Ask::Limit(request) => running(server, flaw, window::limit(request), debug),
    }
}

fn running<'a, T: 'a>(
    server: &'a Server,
    flaw: Flaw,
    mut request: Request<'a, Remote, T>,
    show: fn(Result<T, BackendError>) -> Said,
) -> Running<'a> {
    let mut next = Some(request.begin());
    Box::new(move || {
        let step = match next.take()? {
            Step::Load(needs) => request.loaded(server.load(&name(), needs)),
            Step::Commit(commit) => request.committed(server.commit(&name(), flaw.spoil(commit))),
            done @ Step::Done(_) => done,
        };
        match step {
            Step::Done(answer) => Some(show(answer)),
            step @ (Step::Load(_) | Step::Commit(_)) => {
                next = Some(step);
                None
            }
        }
    })
}

fn debug<T: Debug>(answer: Result<T, BackendError>) -> Said {
    format!("{answer:?}")
}

fn acquired(answer: Result<Answer, BackendError>) -> Said {
    match answer {
        Ok(Answer::Granted { lease, wanted, .. }) => format!("granted {:?} {:?} {wanted}", lease.tokens, lease.slots),
        Ok(Answer::Queued { position, .. }) => format!("queued {position}"),
        Ok(Answer::Busy { .. }) => "busy".to_owned(),
        Err(error) => debug::<()>(Err(error)),
    }
}

fn name() -> LockName {
    "a".parse().unwrap()
}

const LONG: u64 = 30;
/// A lease that ends when the clock is moved.
const SHORT: u64 = 5;
const TICK: Duration = Duration::from_secs(SHORT + 1);

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
            asks.push(Ask::Release(ReleaseRequest { keep: Some(TICK / 2), ..release.clone() }));
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

/// A clock with two moments.
#[derive(Debug, Default)]
struct Hand {
    is_late: AtomicBool,
}

impl Hand {
    fn set(&self, is_late: bool) {
        self.is_late.store(is_late, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Moment {
        let early = Moment::ORIGIN + TICK;
        if self.is_late.load(Ordering::SeqCst) { early + TICK } else { early }
    }
}

/// A server on which a scene was played.
struct Stage {
    clock: Arc<Hand>,
    server: Server,
}

impl Stage {
    fn new(before: &[Claim]) -> Self {
        let clock = Arc::new(Hand::default());
        let stage = Self { server: Server::new(Arc::clone(&clock) as SharedClock), clock };
        before.iter().for_each(|claim| stage.finish(&Ask::Acquire(claim.clone())));
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

    /// The rows at the end, without times and counters.
    fn rows(&self) -> String {
        let tables = self.server.tables();
        let lock = &tables.locks[&name()];
        let now = self.clock.now();
        let living = lock.holds.values().filter(|hold| now < hold.until);
        let mut holds: Vec<_> =
            living.map(|hold| (hold.owner.to_wire(), hold.mode, hold.tokens, &hold.slots)).collect();
        holds.sort_unstable_by_key(|(owner, ..)| owner.to_string());
        let places: Vec<_> =
            lock.places.values().filter(|place| now < place.until).map(|place| place.owner.to_wire()).collect();
        let limit = lock.limit.as_ref().map(|(record, _)| record);
        format!("{holds:?}, {places:?}, {} tombstones, {limit:?}, token {}", lock.given_up.len(), lock.last_token)
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
            Next::Late => stage.clock.set(true),
            Next::Early => stage.clock.set(false),
            Next::Crash => running[0] = None,
        }
    }
    for index in [0, 1] {
        while step(index, &mut running) {}
    }
    drop(running);
    (said, stage.rows())
}

/// Two steps of each, which is load and commit, in any order. Somewhere between them the clock moves, or the first request is interrupted.
fn schedules(between: Option<Next>) -> Vec<Vec<Next>> {
    let turns = |bits: u8| (0..4).map(move |bit| if bits >> bit & 1 == 0 { Next::First } else { Next::Second });
    let orders = (0..16_u8).filter(|bits| bits.count_ones() == 2).map(|bits| turns(bits).collect::<Vec<_>>());
    let Some(between) = between else { return orders.collect() };
    let insert = |order: Vec<Next>| {
        (1..4).map(move |at| {
            let mut schedule = order.clone();
            schedule.insert(at, between);
            schedule
        })
    };
    orders.flat_map(insert).collect()
}

/// How a pair may end: as one after the other. Requests that overlap may each have read the clock before the other one did. A request that
/// is interrupted has taken effect or not.
fn serial(before: &[Claim], pair: [&Ask; 2], between: Option<Next>) -> Vec<Outcome> {
    let (first, second) = (&[Next::First; 8][..], &[Next::Second; 8][..]);
    let whole = |order: [&[Next]; 5]| play(before, pair, &order.concat(), Flaw::Nothing);
    let times: &[[Next; 3]] = match between {
        Some(Next::Late) => &[
            [Next::Early, Next::Early, Next::Late],
            [Next::Early, Next::Late, Next::Late],
            [Next::Late, Next::Early, Next::Late],
            [Next::Late; 3],
        ],
        _ => &[[Next::Early; 3]],
    };
    let orders = [[first, second], [second, first]];
    let timed = |[one, other]: [&[Next]; 2]| {
        times.iter().map(move |[a, b, c]| whole([&[*a], one, &[*b], other, &[*c]])).collect::<Vec<_>>()
    };
    let mut outcomes: Vec<Outcome> = orders.into_iter().flat_map(timed).collect();
    if between == Some(Next::Crash) {
        outcomes.push(whole([&[Next::Crash], second, &[], &[], &[]]));
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
        for pair in pairs {
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
    for flaw in [Flaw::Version, Flaw::Tail, Flaw::Ends] {
        assert!(find_wrong(flaw).is_some(), "{flaw:?} was not compared");
    }
}
