#[path = "tests/events.rs"]
mod events;

use std::time::Duration;

use lock_core::NameKind;
use lock_core::{Capabilities, Durability, LossReason, Patience, Waiting};

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::lock::Lock;
use crate::recorder::{Recorder, claim, grant, hold, join, join_with, panic_at_wakes, refusal, stations};
use crate::sync::atomic::{AtomicBool, Ordering};

const CLOSED: Refusal = Refusal::Error(AcquireError::Closed);

/// A clock that panics on demand.
#[derive(Clone, Debug, Default)]
struct Fragile {
    clock: ManualClock,
    broken: Arc<AtomicBool>,
}

impl Clock for Fragile {
    fn now(&self) -> Moment {
        assert!(!self.broken.load(Ordering::SeqCst), "on purpose");
        self.clock.now()
    }
}

fn site(clock: &Fragile) -> (Arc<crate::Stations<Recorder>>, Arc<Site<Recorder>>) {
    let capabilities = Capabilities::new("test", Waiting::Queue, Durability::Process);
    let stations = stations(capabilities, Arc::new(clock.clone()));
    let site = stations.site(&"a".parse().unwrap(), NameKind::Lock);
    (stations, site)
}

#[test]
fn what_happens_elsewhere_is_carried_out_and_attended_to() {
    let clock = Fragile::default();
    let (_stations, site) = site(&clock);
    join(&site, 1);
    assert_eq!(site.lock().waiters.attended, 0, "the waiter itself runs its claim");
    grant(&site, claim(&site), 7);
    assert_eq!(site.lock().waiters.attended, 1);
    let hold = hold(&site, 1);
    assert!(!site.is_idle());
    clock.clock.advance(Duration::from_secs(60));
    site.handle(Input::Tick);
    assert!(matches!(hold.lost().unwrap().reason, LossReason::Expired(None)));
    let inner = site.lock();
    assert!(inner.waiters.turns.is_empty());
    assert_eq!(inner.waiters.attended, 2);
}

#[test]
fn a_panic_ends_the_station_and_everybody_there_is_told() {
    let clock = Fragile::default();
    let (stations, site) = site(&clock);
    join(&site, 1);
    grant(&site, claim(&site), 7);
    join(&site, 2);
    let hold = hold(&site, 1);
    clock.broken.store(true, Ordering::SeqCst);
    site.handle(Input::Tick);
    clock.broken.store(false, Ordering::SeqCst);
    assert!(matches!(hold.lost().unwrap().reason, LossReason::Closed));
    join(&site, 3);
    assert_eq!([2, 3].map(|turn| refusal(&site, turn)), [const { Some(CLOSED) }; 2]);
    assert_eq!(site.lock().waiters.actions.len(), 1, "the lease is released");
    assert!(stations.site(&"b".parse().unwrap(), NameKind::Lock).is_idle(), "others go on");
}

/// What a station still says after its close has panicked does not count: everybody has been notified.
#[test]
fn a_panic_while_a_broken_station_is_closed_leaves_nobody_waiting() {
    let clock = Fragile::default();
    let (_stations, site) = site(&clock);
    join(&site, 1);
    grant(&site, claim(&site), 7);
    join(&site, 2);
    let hold = hold(&site, 1);
    panic_at_wakes(1);
    clock.broken.store(true, Ordering::SeqCst);
    site.handle(Input::Tick);
    clock.broken.store(false, Ordering::SeqCst);
    join(&site, 3);
    assert_eq!(hold.lost().map(|lost| lost.reason), Some(LossReason::Closed));
    assert_eq!([2, 3].map(|turn| refusal(&site, turn)), [const { Some(CLOSED) }; 2]);
    assert!(site.lock().waiters.turns.open().is_empty());
}

/// The alarms are about to ring one that was replaced meanwhile.
#[test]
fn a_late_ring_leaves_the_alarm_that_is_set() {
    let clock = Fragile::default();
    let (_stations, site) = site(&clock);
    join(&site, 1);
    grant(&site, claim(&site), 7);
    let replaced = site.lock().alarm.unwrap();
    join_with(&site, 2, Patience::within(clock.clock.now(), Duration::from_secs(1)));
    let set = site.lock().alarm.unwrap();
    assert!(set.at() < replaced.at());
    Arc::clone(&site).ring(replaced);
    assert_eq!(site.lock().alarm, Some(set));
    Arc::clone(&site).ring(set);
    assert_ne!(site.lock().alarm, Some(set), "it has rung");
}

/// To leave again would hand the requests of other turns to a loop.
#[test]
fn a_turn_whose_end_is_known_is_not_left_again() {
    let clock = Fragile::default();
    let capabilities = Capabilities::new("test", Waiting::Queue, Durability::Process);
    let stations = stations(capabilities, Arc::new(clock));
    let left = || stations.context().driver.left.lock().unwrap().len();
    let held = |name| {
        let lock = Lock::new(&stations, name);
        let call = lock.ask().unwrap();
        let (_, turn, _) = call.join();
        grant(turn.site(), claim(turn.site()), 7);
        let hold = hold(turn.site(), turn.id().0);
        call.held(turn, Some(Ok(hold))).unwrap().unwrap()
    };
    held("a").ended(Some(Ok(Released::Released))).unwrap();
    assert_eq!(left(), 0);
    drop(held("b"));
    assert_eq!(left(), 1);
}
