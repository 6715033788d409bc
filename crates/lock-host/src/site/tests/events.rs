use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use lock_core::NameKind;
use lock_core::station::{ActionId, Join, Level, Reply, Request};
use lock_core::{
    Answer, Capabilities, Claim, Durability, Effect, ErrorKind, Holder, Lease, LossReason, Note, Operation, Patience,
    Released, Renewed, TokenRange, Waiting, Width,
};

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::observer::Observer;
use crate::recorder::{Recorder, claim, grant, hold, join, observed, panic_at_wakes};
use crate::site::Site;
use crate::stations::Stations;
use crate::sync::Mutex;

const SECOND: Duration = Duration::from_secs(1);

/// When a wait is long.
const LONG: Duration = Duration::from_secs(10);

/// Passes everything on, after it has done something of the test's.
struct Passes<F>(Mutex<Sender<Event>>, F);

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for Passes<F> {
    fn observe(&self, event: &Event) {
        self.0.lock().unwrap().send(event.clone()).unwrap();
        (self.1)(event);
    }
}

struct Rig {
    clock: ManualClock,
    stations: Arc<Stations<Recorder>>,
    site: Arc<Site<Recorder>>,
    told: Receiver<Event>,
}

impl Rig {
    fn new(also: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        let (clock, (sender, told)) = (ManualClock::new(), channel());
        let capabilities = Capabilities::new("test", Waiting::Queue, Durability::Process);
        let observer = Arc::new(Passes(Mutex::new(sender), also));
        let stations = observed(capabilities, Arc::new(clock.clone()), vec![observer]);
        let site = stations.site(&"a".parse().unwrap(), NameKind::Lock);
        Self { clock, stations, site, told }
    }

    fn join(&self, turn: u64, patience: Patience) {
        let turn = TurnId(turn);
        let join = Join { patience, ..Join::new(turn, Note::from_wire("1@test")) };
        let mut inner = self.site.lock();
        inner.waiters.turns.wait(turn);
        self.site.joins(turn, &Acquisition::begin(&"a".parse().unwrap(), "test"));
        self.site.feed(&mut inner, Input::Join(join));
    }

    fn hold(&self, turn: u64) -> Lease {
        self.join(turn, Patience::Forever);
        grant(&self.site, claim(&self.site), 6 + turn)
    }

    fn leave(&self, turn: u64) {
        self.site.abandon(&mut self.site.lock(), TurnId(turn));
    }

    fn queued(&self, position: u32) {
        self.answer_queued(claim(&self.site), position);
    }

    fn answer_queued(&self, (id, claim): (ActionId, Claim), position: u32) {
        let holder = holder();
        let valid_for = claim.terms.ttl.get();
        let answer = Answer::Queued { position, remaining: None, valid_for, holder, drawn: None };
        self.site.handle(Input::Reply(id, Reply::Acquire(Ok(answer))));
    }

    /// Answers the release that the station has asked for.
    fn release(&self, result: Result<Released, BackendError>) {
        let Some(Action { id, request: Request::Release(_), .. }) = self.site.lock().waiters.actions.pop() else {
            panic!("no release")
        };
        self.site.handle(Input::Reply(id, Reply::Release(result)));
    }

    fn renewed(&self, lease: &Lease) {
        let answer = Ok(Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false });
        let asked_at = self.clock.now();
        self.site.handle(Input::Renewal { owner: lease.owner, asked_at, answer });
    }

    fn names(&self) -> Vec<&'static str> {
        self.told.try_iter().map(|event| event.name()).collect()
    }

    /// Whether no call is kept, so that its span has ended.
    fn calls_are_over(&self) -> bool {
        self.site.events.as_ref().unwrap().has_no_calls()
    }

    /// The events, as sentences.
    fn sentences(&self) -> Vec<String> {
        self.told.try_iter().map(|event| event.to_string()).collect()
    }
}

fn holder() -> Holder {
    let tokens = TokenRange::above(5, Width::ONE).unwrap();
    Holder::Leasehold { tokens, note: Note::from_wire("2@elsewhere") }
}

fn unreachable() -> BackendError {
    BackendError::new("test", Operation::Release, ErrorKind::Unreachable, Effect::Unknown, "the connection broke")
}

#[test]
fn a_wait_a_hold_and_a_release_are_told() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Forever);
    rig.queued(3);
    rig.clock.advance(2 * SECOND);
    rig.site.handle(Input::Tick);
    grant(&rig.site, claim(&rig.site), 7);
    rig.clock.advance(SECOND);
    rig.leave(1);
    rig.release(Ok(Released::Released));
    assert_eq!(
        rig.sentences(),
        ["acquired \"a\" (token 7) after 2.0s, from position 3 in the queue", "released \"a\" (token 7) after 1.0s",]
    );
}

#[test]
fn a_position_is_that_of_the_waiters_it_was_told_to() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Forever);
    rig.queued(3);
    rig.leave(1);
    rig.hold(2);
    assert_eq!(rig.sentences()[1..], ["acquired \"a\" (token 8) after 0.0ns"]);
}

#[test]
fn a_position_that_comes_when_nobody_waits_is_nobodys() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Forever);
    let late = claim(&rig.site);
    rig.leave(1);
    rig.site.lock().waiters.actions.clear();
    rig.answer_queued(late, 3);
    rig.hold(2);
    assert_eq!(rig.sentences()[1..], ["acquired \"a\" (token 8) after 0.0ns"]);
}

#[test]
fn a_long_wait_is_told_once_for_each_time_that_has_doubled() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Forever);
    rig.queued(1);
    for _ in 0..45 {
        rig.clock.advance(SECOND);
        rig.site.handle(Input::Tick);
        rig.site.handle(Input::Tick);
    }
    let told = rig.sentences();
    let expected =
        |waited| format!("still waiting for \"a\" after {waited}: {} holds it or waits before you", holder());
    assert_eq!(told, [expected("10.0s"), expected("20.0s"), expected("40.0s")]);
    rig.leave(1);
    rig.clock.advance(60 * SECOND);
    rig.site.handle(Input::Tick);
    assert_eq!(rig.names(), ["not acquired"], "nobody waits any more");
}

/// The station has nothing to do for longer than that; the alarm rings all the same.
#[test]
fn a_long_wait_is_told_though_nothing_happens() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.join(2, Patience::Forever);
    rig.told.try_iter().for_each(drop);
    rig.clock.advance(LONG);
    let told = rig.told.recv_timeout(20 * SECOND).unwrap().to_string();
    assert!(
        told.starts_with("still waiting for \"a\" after 10.0s: ") && told.ends_with("holds it or waits before you"),
        "{told}"
    );
}

#[test]
fn each_wait_that_ends_without_the_lock_is_told_with_its_outcome() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Never);
    rig.queued(1);
    rig.join(2, Patience::within(rig.clock.now(), SECOND));
    rig.queued(1);
    rig.clock.advance(SECOND);
    rig.site.handle(Input::Tick);
    rig.join(3, Patience::Forever);
    rig.site.handle(Input::Cancel(TurnId(3)));
    rig.join(4, Patience::Forever);
    rig.leave(4);
    rig.site.lock().waiters.actions.clear();
    rig.join(5, Patience::Forever);
    rig.stations.close();
    let told: Vec<_> = rig.told.try_iter().collect();
    let held = format!("{} holds it or waits before you", holder());
    let expected = [
        format!("did not get \"a\" after 0.0ns: {held}"),
        format!("did not get \"a\" after 1.0s: {held}"),
        "did not get \"a\" after 0.0ns: the wait was cancelled".to_owned(),
        "did not get \"a\" after 0.0ns: the call was dropped".to_owned(),
        "did not get \"a\" after 0.0ns: the client was closed".to_owned(),
    ];
    assert_eq!(told.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    assert!(told.iter().all(|event| event.level() == Level::Debug), "{told:?}");
    assert!(rig.calls_are_over());
}

#[test]
fn a_store_that_refuses_is_told_as_a_warning() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Forever);
    let denied = BackendError::new("test", Operation::Acquire, ErrorKind::Denied, Effect::None, "no");
    rig.site.handle(Input::Reply(claim(&rig.site).0, Reply::Acquire(Err(denied))));
    let told: Vec<_> = rig.told.try_iter().collect();
    assert!(
        matches!(&told[..], [Event::RequestFailed { .. }, Event::NotAcquired { outcome: Outcome::Failed(_), .. }]),
        "a denial says nothing about whether the store is available: {told:?}"
    );
    assert_eq!(
        (told[1].level(), told[1].to_string()),
        (Level::Warn, "did not get \"a\" after 0.0ns: test acquire: no".into())
    );
}

#[test]
fn calls_at_a_broken_station_are_told_as_well() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    panic_at_wakes(1);
    rig.join(2, Patience::Never);
    rig.told.try_iter().for_each(drop);
    rig.join(3, Patience::Forever);
    assert_eq!(rig.sentences(), ["did not get \"a\" after 0.0ns: the client was closed"]);
}

#[test]
fn a_late_renewal_is_told_with_what_was_left() {
    let rig = Rig::new(|_| {});
    let lease = rig.hold(1);
    rig.clock.advance(11 * SECOND);
    rig.renewed(&lease);
    rig.clock.advance(15 * SECOND);
    rig.renewed(&lease);
    assert_eq!(rig.names(), ["acquired"], "half of the lease was left");
    rig.clock.advance(20 * SECOND);
    rig.renewed(&lease);
    assert_eq!(rig.sentences(), ["renewed \"a\" (token 7) 10.0s late, with 9.7s left"]);
    rig.clock.advance(30 * SECOND);
    rig.renewed(&lease);
    assert_eq!(rig.names(), ["lost"], "too late");
}

#[test]
fn a_renewal_that_is_unsure_has_failed() {
    let rig = Rig::new(|_| {});
    let lease = rig.hold(1);
    let answer = Ok(Renewed::Unsure(unreachable()));
    rig.site.handle(Input::Renewal { owner: lease.owner, asked_at: Moment::ORIGIN, answer });
    assert_eq!(rig.names(), ["acquired", "request failed", "store unavailable"]);
    rig.renewed(&lease);
    assert_eq!(rig.names(), ["store available"]);
}

#[test]
fn a_loss_is_told_with_its_reason() {
    let rig = Rig::new(|_| {});
    let lease = rig.hold(1);
    rig.clock.advance(SECOND);
    let answer = Ok(Renewed::NotHeld);
    rig.site.handle(Input::Renewal { owner: lease.owner, asked_at: Moment::ORIGIN, answer });
    let told: Vec<_> = rig.told.try_iter().collect();
    assert!(matches!(&told[..], [_, Event::Lost { held: SECOND, reason: LossReason::NotHeld, .. }]), "{told:?}");
    assert_eq!(told[1].level(), Level::Error);
}

#[test]
fn a_release_that_finds_nothing_is_a_loss() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.leave(1);
    rig.release(Ok(Released::NotHeld));
    assert_eq!(rig.names(), ["acquired", "lost"]);
}

#[test]
fn a_release_that_was_not_confirmed_is_told_and_so_is_its_end() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.clock.advance(SECOND);
    rig.leave(1);
    rig.release(Err(unreachable()));
    rig.clock.advance(SECOND);
    rig.site.handle(Input::Tick);
    rig.release(Err(unreachable()));
    rig.clock.advance(SECOND);
    rig.site.handle(Input::Tick);
    rig.release(Ok(Released::NotHeld));
    assert_eq!(
        rig.sentences()[1..],
        [
            "a request for \"a\" failed: test release: the connection broke",
            "the store is unavailable: test release: the connection broke",
            "the release of \"a\" (token 7) was not confirmed: test release: the connection broke",
            "a request for \"a\" failed: test release: the connection broke",
            "the store is available again after 2.0s",
            "released \"a\" (token 7) after 1.0s",
        ]
    );
    assert!(rig.calls_are_over());
}

#[test]
fn a_pending_release_has_its_own_times() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.clock.advance(SECOND);
    rig.leave(1);
    rig.release(Err(unreachable()));
    rig.clock.advance(2 * SECOND);
    rig.site.handle(Input::Tick);
    rig.release(Ok(Released::Released));
    let told: Vec<_> = rig.told.try_iter().collect();
    let is_pending = |told: &Event| matches!(told, Event::ReleasePending { held: SECOND, .. });
    assert!(told.iter().any(is_pending), "{told:?}");
    let Some(Event::Released { held, pending, .. }) = told.last() else { panic!("{told:?}") };
    assert_eq!((*held, *pending), (SECOND, Some(2 * SECOND)));
}

#[test]
fn a_pending_release_that_is_not_repeated_any_more_is_told() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.leave(1);
    rig.release(Err(unreachable()));
    for _ in 0..40 {
        rig.clock.advance(SECOND);
        rig.site.handle(Input::Tick);
        if !rig.site.lock().waiters.actions.is_empty() {
            rig.release(Err(unreachable()));
        }
    }
    let told: Vec<_> = rig.told.try_iter().collect();
    let given_up: Vec<_> = told.iter().filter(|told| told.name() == "release given up").collect();
    let [Event::ReleaseGivenUp { pending, .. }] = &given_up[..] else { panic!("{told:?}") };
    assert!((30 * SECOND..40 * SECOND).contains(pending), "{told:?}");
    assert_eq!(given_up[0].level(), Level::Info);
    assert!(rig.calls_are_over());
}

#[test]
fn a_pending_release_that_cannot_succeed_is_given_up_at_once() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.leave(1);
    let denied = BackendError::new("test", Operation::Release, ErrorKind::Denied, Effect::None, "no");
    rig.release(Err(denied));
    assert_eq!(
        rig.sentences()[1..],
        [
            "a request for \"a\" failed: test release: no",
            "the release of \"a\" (token 7) was not confirmed: test release: no",
            "gave up the release of \"a\" (token 7) after 0.0ns: its lease has expired, or it will with its ttl",
        ]
    );
    assert!(rig.calls_are_over());
}

/// For how much of each wait others had the lock, as far as it is known.
fn contended(told: &Receiver<Event>) -> Vec<Option<Duration>> {
    let of = |event| {
        if let Event::Acquired { contended, .. } | Event::NotAcquired { contended, .. } = event {
            return Some(contended);
        }
        None
    };
    told.try_iter().filter_map(of).collect()
}

#[test]
fn a_wait_for_the_store_is_not_one_for_others() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Forever);
    rig.clock.advance(SECOND);
    grant(&rig.site, claim(&rig.site), 7);
    assert_eq!(contended(&rig.told), [None]);
}

#[test]
fn a_wait_for_others_counts_from_when_the_store_tells() {
    let rig = Rig::new(|_| {});
    rig.join(1, Patience::Forever);
    rig.clock.advance(SECOND);
    rig.queued(3);
    rig.clock.advance(2 * SECOND);
    rig.join(2, Patience::Forever);
    rig.clock.advance(2 * SECOND);
    rig.leave(2);
    rig.site.handle(Input::Tick);
    grant(&rig.site, claim(&rig.site), 7);
    assert_eq!(contended(&rig.told), [Some(2 * SECOND), Some(4 * SECOND)]);
}

#[test]
fn a_wait_for_others_of_the_same_client_counts() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.clock.advance(SECOND);
    rig.join(2, Patience::Forever);
    rig.clock.advance(SECOND);
    rig.join(3, Patience::Never);
    rig.leave(1);
    rig.release(Ok(Released::Released));
    grant(&rig.site, claim(&rig.site), 8);
    assert_eq!(contended(&rig.told), [None, Some(Duration::ZERO), Some(SECOND)]);
}

#[test]
fn the_store_is_reported_once_for_all_locks() {
    let rig = Rig::new(|_| {});
    let other = rig.stations.site(&"b".parse().unwrap(), NameKind::Lock);
    for site in [&rig.site, &other] {
        join(site, 1);
    }
    for site in [&rig.site, &other] {
        let (id, _) = claim(site);
        site.handle(Input::Reply(id, Reply::Acquire(Err(unreachable()))));
    }
    assert_eq!(rig.names(), ["request failed", "store unavailable", "request failed"]);
    rig.clock.advance(5 * SECOND);
    for site in [&rig.site, &other] {
        site.handle(Input::Tick);
        grant(site, claim(site), 7);
    }
    assert_eq!(rig.names(), ["store available", "acquired", "acquired"]);
}

#[test]
fn the_end_of_a_client_is_a_release() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.stations.close();
    assert_eq!(rig.names(), ["acquired", "released"]);
}

/// The second panic is that of its close, so that nothing comes out of it any more.
#[test]
fn the_end_of_a_broken_station_is_a_loss() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.join(2, Patience::Forever);
    panic_at_wakes(2);
    rig.join(3, Patience::Never);
    assert_eq!(rig.names(), ["acquired", "not acquired", "not acquired", "lost"]);
}

/// What panics is the carrying out of a refusal.
#[test]
fn a_hold_that_ends_with_its_station_is_told_with_how_long_it_lasted() {
    let rig = Rig::new(|_| {});
    rig.hold(1);
    rig.clock.advance(SECOND);
    panic_at_wakes(1);
    rig.join(2, Patience::Never);
    let told: Vec<_> = rig.told.try_iter().collect();
    let closed = |last: &Event| matches!(last, Event::Lost { held: SECOND, reason: LossReason::Closed, .. });
    assert!(told.last().is_some_and(closed), "{told:?}");
}

#[test]
fn an_observer_may_use_the_lock_it_is_told_of() {
    let site: Arc<OnceLock<Arc<Site<Recorder>>>> = Arc::default();
    let inside = Arc::clone(&site);
    let rig = Rig::new(move |_| {
        if let Some(site) = inside.get() {
            assert!(site.last_error().is_none());
            site.handle(Input::Tick);
        }
    });
    assert!(site.set(Arc::clone(&rig.site)).is_ok());
    let (sender, done) = channel();
    std::thread::spawn(move || {
        rig.hold(1);
        rig.leave(1);
        rig.release(Ok(Released::Released));
        sender.send(rig.names()).unwrap();
    });
    let told = done.recv_timeout(20 * SECOND);
    assert_eq!(told.as_deref(), Ok(&["acquired", "released"][..]), "the observer and the site wait for each other");
}

#[test]
fn a_panic_of_an_observer_loses_nothing() {
    let rig = Rig::new(|event| assert_ne!(event.name(), "acquired", "on purpose"));
    rig.hold(1);
    let hold = hold(&rig.site, 1);
    assert!(hold.lost().is_none());
    rig.leave(1);
    rig.release(Ok(Released::Released));
    assert_eq!(rig.names(), ["acquired", "released"]);
    rig.hold(2);
    assert_eq!(rig.names(), ["acquired"], "the station goes on");
}
