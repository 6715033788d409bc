//! A panic ends one station or one request, and never a thread that all locks depend on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lock_blocking::Client;
use lock_core::{AcquireError, LossReason, Moment};
use lock_host::{Clock, HoldError, ManualClock, Proof};

use crate::support::{Ask, Bench, Hooked, until};

const SECOND: Duration = Duration::from_secs(1);

/// A clock that panics on the thread with one name.
#[derive(Clone, Debug)]
struct Fussy {
    clock: ManualClock,
    thread: &'static str,
    /// From when on it panics, after how many readings, and how often.
    panics: Arc<Mutex<(Moment, u64, u64)>>,
}

impl Fussy {
    fn of(bench: &Bench, thread: &'static str) -> Self {
        Self { clock: bench.clock.clone(), thread, panics: Arc::new(Mutex::new((Moment::ORIGIN, 0, 0))) }
    }

    fn panic(&self, from: Moment, after: u64, times: u64) {
        *self.panics.lock().unwrap() = (from, after, times);
    }

    fn has_panicked(&self) -> bool {
        self.panics.lock().unwrap().2 == 0
    }

    fn client(&self, bench: &Bench) -> Client {
        Client::builder(Arc::new(bench.store.blocking())).clock(Arc::new(self.clone())).build().unwrap()
    }
}

impl Clock for Fussy {
    fn now(&self) -> Moment {
        let now = self.clock.now();
        if thread::current().name() == Some(self.thread) {
            let mut panics = self.panics.lock().unwrap();
            let (from, after, times) = &mut *panics;
            if now >= *from && *after > 0 {
                *after -= 1;
            } else if now >= *from && *times > 0 {
                *times -= 1;
                drop(panics);
                panic!("on purpose");
            }
        }
        now
    }

    fn on_leap(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.clock.on_leap(wake);
    }
}

#[test]
fn a_panic_in_an_alarm_ends_that_station_only() {
    let bench = Bench::new();
    let fussy = Fussy::of(&bench, "leasehold-alarms");
    let client = fussy.client(&bench);
    let guard = client.mutex("a").max_hold(5 * SECOND).acquire().unwrap();
    let other = client.mutex("b").max_hold(6 * SECOND).acquire().unwrap();
    // The thread reads the clock once itself, and once more in the station.
    fussy.panic(bench.clock.now() + 5 * SECOND, 1, 1);
    bench.clock.advance(5 * SECOND);
    until(|| guard.lost_within(Duration::ZERO).is_some());
    assert!(fussy.has_panicked());
    assert_eq!(guard.lost().reason, LossReason::Closed);
    assert!(matches!(guard.release(), Err(HoldError::Lost(_))));
    assert!(matches!(client.mutex("a").try_acquire(), Err(AcquireError::Closed)));
    bench.becomes_free("a");
    // Alarms still ring: nothing else ends a hold that nobody checks.
    bench.clock.advance(SECOND);
    until(|| Proof::hold(&other).lost().is_some());
    assert!(matches!(other.lost().reason, LossReason::MaxHold));
}

#[test]
fn leases_are_released_when_the_keeper_panics() {
    let bench = Bench::new();
    let fussy = Fussy::of(&bench, "leasehold-keeper");
    let client = fussy.client(&bench);
    let guard = client.mutex("a").acquire().unwrap();
    fussy.panic(Moment::ORIGIN, 0, 1);
    // Wakes the keeper.
    bench.clock.advance(SECOND);
    until(|| guard.lost_within(Duration::ZERO).is_some());
    assert!(fussy.has_panicked());
    assert_eq!(guard.lost().reason, LossReason::Closed);
    bench.becomes_free("a");
}

#[test]
fn panics_in_the_background_cost_no_thread() {
    let bench = Bench::new();
    let fussy = Fussy::of(&bench, "leasehold-driver");
    let client = fussy.client(&bench);
    let hold = |name: String| client.mutex(name).max_hold(SECOND).acquire().unwrap();
    fussy.panic(Moment::ORIGIN, 0, 10);
    for n in 0..10 {
        let _guard = hold(format!("{n}"));
        bench.clock.advance(SECOND);
        bench.becomes_free(&format!("{n}"));
    }
    until(|| fussy.has_panicked());
    let _guard = hold("last".into());
    bench.clock.advance(SECOND);
    bench.becomes_free("last");
}

#[test]
fn a_backend_that_panics_in_a_renewal_is_asked_again() {
    let bench = Bench::new();
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let backend = Hooked::new(bench.store.blocking(), move |ask: Ask<'_>| {
        assert!(!matches!(ask, Ask::Renew(..)) || count.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
        Ok(())
    });
    let client = Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap();
    let guard = client.mutex("a").acquire().unwrap();
    bench.clock.advance(10 * SECOND);
    until(|| {
        bench.clock.advance(SECOND / 10);
        calls.load(Ordering::SeqCst) >= 2 && guard.remaining() > 25 * SECOND
    });
    assert!(guard.check().is_ok());
}
