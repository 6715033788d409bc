//! A panic ends one station or one request, and never a thread that all locks depend on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use std::{panic, thread};

use lock_async::Client;
use lock_core::{AcquireError, Effect, ErrorKind, LossReason, Moment, ReleaseRequest};
use lock_host::{Clock, HoldError, ManualClock, Proof};

use crate::support::{Bench, Hook, Hooked, PATIENCE, until};

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
        Client::builder(Arc::new(bench.store.nonblocking())).clock(Arc::new(self.clone())).build().unwrap()
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

/// The location and the message of a panic of `make`.
fn panic_of(make: impl FnOnce() + Send + 'static) -> (String, u32, String) {
    const THREAD: &str = "without a runtime";
    let (sender, told) = mpsc::channel();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if let (Some(THREAD), Some(at)) = (thread::current().name(), info.location()) {
            let message = info.payload().downcast_ref::<&str>().unwrap().to_string();
            _ = sender.send((at.file().to_owned(), at.line(), message));
        }
        before(info);
    }));
    assert!(thread::Builder::new().name(THREAD.into()).spawn(make).unwrap().join().is_err());
    told.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn a_client_made_without_a_runtime_points_at_the_line_that_made_it() {
    let bench = Bench::new();
    let (one, two) = (Arc::new(bench.store.nonblocking()), Arc::new(bench.store.nonblocking()));
    let (here, by_new) = (line!(), panic_of(|| drop(Client::new(one))));
    assert_eq!((by_new.0.as_str(), by_new.1), (file!(), here));
    let (here, by_build) = (line!(), panic_of(|| drop(Client::builder(two).build())));
    assert_eq!((by_build.0.as_str(), by_build.1), (file!(), here));
    for word in ["tokio::main", "Runtime::block_on", "Runtime::enter", "blocking API"] {
        assert!(by_new.2.contains(word) && by_new.2 == by_build.2, "{by_new:?}");
    }
}

#[tokio::test]
async fn a_panic_in_an_alarm_ends_that_station_only() {
    let bench = Bench::new();
    let fussy = Fussy::of(&bench, "leasehold-alarms");
    let client = fussy.client(&bench);
    let guard = client.mutex("a").max_hold(5 * SECOND).acquire().await.unwrap();
    let other = client.mutex("b").max_hold(6 * SECOND).acquire().await.unwrap();
    // The thread reads the clock once itself, and once more in the station.
    fussy.panic(bench.clock.now() + 5 * SECOND, 1, 1);
    bench.clock.advance(5 * SECOND);
    until(|| fussy.has_panicked()).await;
    assert_eq!(guard.lost().await.reason, LossReason::Closed);
    assert!(matches!(guard.release().await, Err(HoldError::Lost(_))));
    assert!(matches!(client.mutex("a").try_acquire().await, Err(AcquireError::Closed)));
    bench.becomes_free("a").await;
    // Alarms still ring: nothing else ends a hold that nobody checks.
    bench.clock.advance(SECOND);
    until(|| Proof::hold(&other).lost().is_some()).await;
    assert!(matches!(other.lost().await.reason, LossReason::MaxHold));
}

#[tokio::test]
async fn a_backend_that_panics_has_given_an_unknown_answer() {
    let bench = Bench::new();
    let calls = AtomicU64::new(0);
    let backend = Hooked::new(bench.store.nonblocking(), move |_: &ReleaseRequest| -> Hook {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            assert!(call > 0, "on purpose");
            Ok(())
        })
    });
    let client = Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap();
    let error = client.mutex("a").acquire().await.unwrap().release().await.unwrap_err();
    let HoldError::Backend(error) = error else { panic!("{error}") };
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::Unknown));
    assert!(client.mutex("b").acquire().await.unwrap().release().await.is_ok());
}
