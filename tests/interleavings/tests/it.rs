//! Each scenario is run under many schedules; a failure prints the seed, and `SHUTTLE_RANDOM_SEED` runs it again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

use std::time::Duration;

use interleavings::{Alarm, Alarms, CancelToken, Client, Clock, ManualClock, Ring, Store};
use lock_core::{
    AcquireError, Admission, Capabilities, Durability, Keeper, Lease, Owner, Policy, Slots, Terms, TokenRange, Ttl,
    Waiting, Width,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;

const SECOND: Duration = Duration::from_secs(1);
/// Chosen: all scenarios together stay well under the time that a person waits.
const SCHEDULES: usize = 400;

/// How many may be needed to find what is broken. It ends with the first that does.
const SCHEDULES_TO_FIND: usize = 100 * SCHEDULES;

fn schedules(scenario: fn()) {
    so_many(SCHEDULES, scenario);
}

fn found(scenario: fn()) {
    so_many(SCHEDULES_TO_FIND, scenario);
}

/// Half of them with few changes of turn at unlikely places, half at random.
fn so_many(schedules: usize, scenario: fn()) {
    let mut config = shuttle::Config::new();
    config.stack_size = 512 * 1024;
    shuttle::Runner::new(PctScheduler::new(3, schedules / 2), config.clone()).run(scenario);
    shuttle::Runner::new(RandomScheduler::new(schedules / 2), config).run(scenario);
}

struct Bench {
    clock: ManualClock,
    store: Store,
    client: Client,
}

fn bench() -> Bench {
    let (clock, store) = (ManualClock::new(), Store::default());
    let client = Client::builder(Arc::new(store.clone())).clock(Arc::new(clock.clone())).build().unwrap();
    Bench { clock, store, client }
}

#[test]
fn every_waiter_is_admitted() {
    schedules(|| {
        let bench = bench();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let mutex = bench.client.mutex("a");
                thread::spawn(move || drop(mutex.acquire().unwrap()))
            })
            .collect();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert_eq!(bench.store.holder(), None);
    });
}

#[test]
fn a_waiter_that_gives_up_while_it_is_admitted_leaves_nothing() {
    schedules(|| {
        let bench = bench();
        let guard = bench.client.mutex("a").acquire().unwrap();
        let mutex = bench.client.mutex("a").wait(SECOND);
        let waiter = thread::spawn(move || match mutex.acquire() {
            Ok(guard) => drop(guard),
            // The wait may be over before the store has said that the lock is held.
            Err(AcquireError::TimedOut { .. } | AcquireError::Backend(_)) => {}
            Err(other) => panic!("{other}"),
        });
        let clock = bench.clock.clone();
        let time = thread::spawn(move || clock.advance(SECOND));
        assert_eq!(guard.release(), Ok(()));
        time.join().unwrap();
        // It may have begun to wait only now.
        bench.clock.advance(SECOND);
        waiter.join().unwrap();
        bench.client.close();
        assert_eq!(bench.store.holder(), None);
    });
}

#[test]
fn a_waiter_that_is_cancelled_while_it_is_admitted_leaves_nothing() {
    schedules(|| {
        let bench = bench();
        let guard = bench.client.mutex("a").acquire().unwrap();
        let (mutex, shutdown) = (bench.client.mutex("a"), CancelToken::new());
        let cancel = shutdown.clone();
        let waiter = thread::spawn(move || match mutex.cancelled_by(&cancel).acquire() {
            Ok(guard) => assert_eq!(guard.release(), Ok(())),
            Err(AcquireError::Cancelled) => {}
            Err(other) => panic!("{other}"),
        });
        let stopping = thread::spawn(move || shutdown.cancel());
        assert_eq!(guard.release(), Ok(()));
        stopping.join().unwrap();
        waiter.join().unwrap();
        bench.client.close();
        assert_eq!(bench.store.holder(), None);
    });
}

#[test]
fn a_loss_is_told_though_the_guard_is_being_dropped() {
    schedules(|| {
        let bench = bench();
        let guard = Arc::new(bench.client.mutex("a").acquire().unwrap());
        let other = Arc::clone(&guard);
        let watcher = thread::spawn(move || other.lost());
        bench.store.revoke();
        bench.clock.advance(10 * SECOND);
        bench.clock.advance(20 * SECOND);
        drop(guard);
        watcher.join().unwrap();
        drop(bench.client.mutex("a").acquire().unwrap());
        assert_eq!(bench.store.holder(), None);
    });
}

#[test]
fn closing_while_others_join_leaves_nothing() {
    schedules(|| {
        let bench = bench();
        let joining: Vec<_> = (0..2)
            .map(|_| {
                let mutex = bench.client.mutex("a");
                thread::spawn(move || match mutex.acquire() {
                    Ok(guard) => drop(guard),
                    Err(AcquireError::Closed) => {}
                    Err(other) => panic!("{other}"),
                })
            })
            .collect();
        bench.client.close();
        joining.into_iter().for_each(|joining| joining.join().unwrap());
        bench.client.close();
        assert_eq!(bench.store.holder(), None);
    });
}

#[test]
fn a_renewal_that_meets_the_end_of_a_turn_harms_nobody() {
    schedules(|| {
        let bench = bench();
        let guard = bench.client.mutex("a").acquire().unwrap();
        let clock = bench.clock.clone();
        let time = thread::spawn(move || clock.advance(10 * SECOND));
        assert_eq!(guard.release(), Ok(()));
        let next = bench.client.mutex("a").acquire().unwrap();
        time.join().unwrap();
        assert!(next.check().is_ok() && bench.store.holder().is_some());
        assert_eq!(next.release(), Ok(()));
        assert!(bench.store.renewals() <= 2);
    });
}

#[test]
fn a_lease_is_renewed_however_its_keeping_meets_the_keeper() {
    schedules(|| {
        let bench = bench();
        let guard = bench.client.mutex("a").acquire().unwrap();
        bench.clock.advance(10 * SECOND);
        while bench.store.renewals() == 0 {
            thread::yield_now();
        }
        assert!(guard.check().is_ok());
    });
}

#[derive(Default)]
struct Bell(Mutex<bool>, Condvar);

impl Bell {
    fn await_ring(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |rung| !*rung).unwrap());
    }

    fn note_ring(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

impl Ring for Bell {
    fn ring(self: Arc<Self>, _: Alarm) {
        self.note_ring();
    }
}

impl interleavings::broken::deaf_alarms::Ring for Bell {
    fn ring(self: Arc<Self>, _: interleavings::broken::deaf_alarms::Alarm) {
        self.note_ring();
    }
}

/// Two threads set alarms, one takes its own back and sets it again, while time passes: every alarm that is set rings.
macro_rules! alarms_ring {
    ($alarms:ty, $ring:path) => {{
        let clock = ManualClock::new();
        let alarms = Arc::new(<$alarms>::start(Arc::new(clock.clone())).unwrap());
        let due = clock.now() + SECOND;
        let setting: Vec<_> = (0..2)
            .map(|_| {
                let alarms = Arc::clone(&alarms);
                thread::spawn(move || {
                    let bell = Arc::new(Bell::default());
                    let ring: Arc<dyn $ring> = bell.clone();
                    let late = alarms.set(due + SECOND, Arc::downgrade(&ring));
                    alarms.unset(late);
                    alarms.set(due, Arc::downgrade(&ring));
                    bell.await_ring();
                })
            })
            .collect();
        clock.advance(SECOND);
        setting.into_iter().for_each(|setting| setting.join().unwrap());
    }};
}

#[test]
fn every_alarm_rings() {
    schedules(|| alarms_ring!(Alarms, Ring));
}

#[test]
#[should_panic(expected = "deadlock")]
fn alarms_that_do_not_wake_the_sleeper_are_found() {
    found(|| {
        use interleavings::broken::deaf_alarms;
        alarms_ring!(deaf_alarms::Alarms, deaf_alarms::Ring);
    });
}

/// A station leaves a lease while the keeper goes from a short sleep to a longer one, in which it would be too late.
macro_rules! the_keeper_hears {
    ($module:path) => {{
        use $module::{KeeperStep, RenewalQueue};
        let (clock, changed) = (ManualClock::new(), Arc::new(Condvar::new()));
        let woken = Arc::clone(&changed);
        let queue = RenewalQueue::new(keeper(), Arc::new(clock.clone()), move || woken.notify_one());
        let start = clock.now();
        let admission = move |valid_for| Admission { at: start, asked_at: start, valid_for };
        queue.start(lease(1, SECOND * 3 / 2), admission(SECOND * 3 / 2));
        assert!(matches!(queue.next(&mut queue.lock()), KeeperStep::Sleep(nap) if nap <= SECOND / 2));
        clock.advance(SECOND / 2);
        assert!(matches!(queue.next(&mut queue.lock()), KeeperStep::Send(_)));
        let other = Arc::clone(&queue);
        let station = thread::spawn(move || other.start(lease(2, SECOND * 3), admission(SECOND * 3)));
        let mut state = queue.lock();
        loop {
            match queue.next(&mut state) {
                // The second lease is due earlier than it would look again.
                KeeperStep::Sleep(nap) if nap < SECOND => break,
                KeeperStep::Sleep(_) => state = changed.wait(state).unwrap(),
                // The first one has been held for a while.
                KeeperStep::Lasts(_) => {}
                other => panic!("nothing else was due: {other:?}"),
            }
        }
        drop(state);
        station.join().unwrap();
    }};
}

fn keeper() -> Keeper {
    Keeper::new(Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process)), 7)
}

fn lease(n: u8, ttl: Duration) -> Arc<Lease> {
    let tokens = TokenRange::above(0, Width::ONE).unwrap();
    Arc::new(Lease {
        name: "a".parse().unwrap(),
        owner: Owner::from_random([n; 16]),
        tokens,
        terms: Terms::exclusive(Ttl::new(ttl).unwrap()),
        slots: Slots::NONE,
    })
}

#[test]
fn the_keeper_hears_of_every_lease_in_time() {
    schedules(|| the_keeper_hears!(interleavings));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_keeper_that_does_not_say_that_it_looks_is_found() {
    found(|| the_keeper_hears!(interleavings::broken::hasty_renewals));
}

#[test]
fn threads_that_share_connections_are_all_answered() {
    schedules(interleavings::sharing::all_are_answered);
}

#[test]
#[should_panic(expected = "deadlock")]
fn threads_that_wait_without_a_last_look_are_found() {
    found(interleavings::sharing::all_are_answered_by_hasty_slots);
}
