//! Both facades report the same to observers, in the same order.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use leasehold::clock::ManualClock;
use leasehold::memory::MemoryStore;
use leasehold::observe::{Event, Observer};
use leasehold::{AcquireError, BackendConfig, HoldError, LockName, LossReason, blocking};
use test_support::RedisServer;
use test_support::bounds::{Watchdog, wait_for};
use tokio::runtime::Runtime;

/// A request for a lease of this ttl may take a second.
const TTL: Duration = Duration::from_secs(6);
/// Every wait for a lock ends, or a test that fails would wait for its own threads.
const WAIT: Duration = Duration::from_secs(30);
/// A wait that is in vain; the store must have answered before its end.
const VAIN_WAIT: Duration = Duration::from_secs(3);

/// Records the events.
#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Observer for Log {
    /// How many requests fail while the store is away depends on the machine, so they are left out.
    fn observe(&self, event: &Event) {
        if matches!(event, Event::RequestFailed { .. }) {
            return;
        }
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Log {
    fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    fn names(&self) -> Vec<&'static str> {
        self.all().iter().map(Event::name).collect()
    }

    /// Waits until this was reported last.
    #[track_caller]
    fn ends_with(&self, name: &str) {
        wait_for(&format!("{name:?} to be told"), || {
            let names = self.names();
            if names.last() == Some(&name) { Ok(()) } else { Err(names.join(", ")) }
        });
    }
}

/// A client of either facade.
enum Client {
    Async(Runtime, leasehold::Client),
    Blocking(blocking::Client),
}

enum Guard<'a> {
    Async(&'a Runtime, leasehold::Guard),
    Blocking(blocking::Guard),
}

type Connect = fn(&str, Arc<Log>) -> Client;

fn on_tokio(url: &str, log: Arc<Log>) -> Client {
    let (runtime, config) = (Runtime::new().unwrap(), BackendConfig::from_url(url).unwrap());
    let client = runtime.block_on(async { leasehold::builder(&config).await.unwrap().observer(log).build().unwrap() });
    Client::Async(runtime, client)
}

fn on_threads(url: &str, log: Arc<Log>) -> Client {
    let config = BackendConfig::from_url(url).unwrap();
    Client::Blocking(blocking::builder(&config).unwrap().observer(log).build().unwrap())
}

impl Client {
    fn acquire(&self, name: &str) -> Guard<'_> {
        match self {
            Self::Async(runtime, client) => {
                Guard::Async(runtime, runtime.block_on(client.mutex(name).ttl(TTL).wait(WAIT).acquire()).unwrap())
            }
            Self::Blocking(client) => Guard::Blocking(client.mutex(name).ttl(TTL).wait(WAIT).acquire().unwrap()),
        }
    }

    /// Whether it got the lock, without a wait.
    fn tries(&self, name: &str) -> Result<bool, AcquireError> {
        match self {
            Self::Async(runtime, client) => {
                runtime.block_on(client.mutex(name).ttl(TTL).try_acquire()).map(|guard| guard.is_some())
            }
            Self::Blocking(client) => client.mutex(name).ttl(TTL).try_acquire().map(|guard| guard.is_some()),
        }
    }

    fn waits(&self, name: &str, wait: Duration) -> Result<(), AcquireError> {
        match self {
            Self::Async(runtime, client) => runtime.block_on(client.mutex(name).wait(wait).acquire()).map(drop),
            Self::Blocking(client) => client.mutex(name).wait(wait).acquire().map(drop),
        }
    }

    fn close(&self) {
        match self {
            Self::Async(runtime, client) => runtime.block_on(client.close()),
            Self::Blocking(client) => client.close(),
        }
    }
}

impl Guard<'_> {
    fn release(self) -> Result<(), HoldError> {
        match self {
            Self::Async(runtime, guard) => runtime.block_on(guard.release()),
            Self::Blocking(guard) => guard.release(),
        }
    }

    fn remaining(&self) -> Duration {
        match self {
            Self::Async(_, guard) => guard.remaining(),
            Self::Blocking(guard) => guard.remaining(),
        }
    }
}

/// Waits until one client waits for a lock.
#[track_caller]
fn is_awaited(client: &blocking::Client, name: &LockName) {
    wait_for("the waiter to be queued", || match client.inspect().unwrap().holder(name, TTL) {
        Ok(entry) => entry.is_some_and(|entry| entry.waiters == 1).then_some(()).ok_or_else(String::new),
        Err(error) => Err(error.to_string()),
    });
}

/// A hold and a release, a wait, a late renewal, a loss, and a release that is confirmed late.
fn play(connect: Connect) -> Vec<Event> {
    let (server, log) = (RedisServer::start(), Arc::new(Log::default()));
    let client = connect(&server.url(), Arc::clone(&log));
    client.acquire("held").release().unwrap();
    log.ends_with("released");

    let other = blocking::connect(&server.url()).unwrap();
    let first = other.mutex("awaited").acquire().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.acquire("awaited").release().unwrap());
        is_awaited(&other, first.name());
        first.release().unwrap();
        waiting.join().unwrap();
    });
    log.ends_with("released");

    let guard = client.acquire("renewed");
    server.stop();
    wait_for("less than half of the lease to be left", || (guard.remaining() < TTL * 2 / 5).then_some(()));
    server.resume();
    log.ends_with("renewed late");

    server.stop();
    log.ends_with("lost");
    // The renewal in flight ends as well, so that the release alone finds the store.
    thread::sleep(Duration::from_millis(1500));
    server.resume();
    log.ends_with("store available");
    assert!(matches!(guard.release(), Err(HoldError::Lost(_))));

    let guard = client.acquire("released late");
    log.ends_with("acquired");
    server.stop();
    assert!(guard.release().is_err());
    log.ends_with("release pending");
    server.resume();
    log.ends_with("released");
    log.all()
}

/// An event without its times.
fn outline(event: &Event) -> String {
    let lock = event.lock().map(|lock| format!(" {lock}")).unwrap_or_default();
    let more = if let Event::Acquired { position, .. } = event {
        // A lock that is handed over at once may arrive before the answer with the position.
        assert!(position.is_none_or(|position| position == 1), "only one waits: {position:?}");
        String::new()
    } else if let Event::Lost { reason, .. } = event {
        format!(", after an error: {}", matches!(reason, LossReason::Expired(Some(_))))
    } else {
        String::new()
    };
    format!("{}{lock}{more}", event.name())
}

#[test]
fn both_facades_tell_the_same_in_the_same_order() {
    let _watchdog = Watchdog::over_this_test();
    let expected = [
        "acquired held",
        "released held",
        "acquired awaited",
        "released awaited",
        "acquired renewed",
        "store unavailable",
        "store available",
        "renewed late renewed",
        "store unavailable",
        "lost renewed, after an error: true",
        "store available",
        "acquired released late",
        "store unavailable",
        "release pending released late",
        "store available",
        "released released late",
    ];
    let plays = [on_tokio as Connect, on_threads].map(|connect| thread::spawn(move || play(connect)));
    for told in plays.map(|play| play.join().unwrap()) {
        assert_eq!(told.iter().map(outline).collect::<Vec<_>>(), expected, "{told:#?}");
    }
}

/// Calls that find the lock held, that find the store gone, and that come too late.
fn play_in_vain(connect: Connect) -> Vec<Event> {
    let (server, log) = (RedisServer::start(), Arc::new(Log::default()));
    let client = connect(&server.url(), Arc::clone(&log));
    let other = blocking::connect(&server.url()).unwrap();
    let held = other.mutex("a").acquire().unwrap();
    assert!(!client.tries("a").unwrap());
    log.ends_with("not acquired");
    assert!(matches!(client.waits("a", VAIN_WAIT), Err(AcquireError::TimedOut { .. })));
    log.ends_with("not acquired");
    held.release().unwrap();

    server.stop();
    assert!(matches!(client.tries("b"), Err(AcquireError::Backend(_))));
    log.ends_with("not acquired");
    server.resume();
    log.ends_with("store available");

    client.close();
    assert!(matches!(client.tries("a"), Err(AcquireError::Closed)));
    log.ends_with("not acquired");
    log.all()
}

#[test]
fn both_facades_tell_of_calls_that_do_not_get_the_lock() {
    let _watchdog = Watchdog::over_this_test();
    let expected = [
        "busy a, by somebody known: true",
        "timed out a, by somebody known: true",
        "store unavailable",
        "failed b, by somebody known: false",
        "store available",
        "closed a, by somebody known: false",
    ];
    let outline = |event: &Event| {
        let Event::NotAcquired { lock, outcome, .. } = event else { return event.name().to_owned() };
        format!("{} {lock}, by somebody known: {}", outcome.name(), outcome.holder().is_some())
    };
    let plays = [on_tokio as Connect, on_threads].map(|connect| thread::spawn(move || play_in_vain(connect)));
    for told in plays.map(|play| play.join().unwrap()) {
        assert_eq!(told.iter().map(outline).collect::<Vec<_>>(), expected, "{told:#?}");
        let Event::NotAcquired { waited, .. } = &told[1] else { unreachable!("as expected") };
        assert!(*waited >= VAIN_WAIT, "{told:#?}");
    }
}

/// What only one facade has: a future that is dropped, and a token that cancels.
#[test]
fn a_call_that_its_user_ends_is_reported() {
    let _watchdog = Watchdog::over_this_test();
    let (store, log) = (MemoryStore::default(), Arc::new(Log::default()));
    let holder = blocking::Client::new(Arc::new(store.blocking())).unwrap();
    let held = holder.mutex("a").acquire().unwrap();
    Runtime::new().unwrap().block_on(async {
        let client = leasehold::Client::builder(Arc::new(store.nonblocking()));
        let client = client.observer(Arc::clone(&log) as Arc<dyn Observer>).build().unwrap();
        let ended = tokio::time::timeout(Duration::from_millis(200), client.mutex("a").acquire()).await;
        assert!(ended.is_err());
        log.ends_with("not acquired");
    });
    let client = blocking::Client::builder(Arc::new(store.blocking()));
    let client = client.observer(Arc::clone(&log) as Arc<dyn Observer>).build().unwrap();
    let token = blocking::CancelToken::new();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.mutex("a").cancelled_by(&token).acquire().map(drop));
        is_awaited(&holder, held.name());
        token.cancel();
        assert!(matches!(waiting.join().unwrap(), Err(AcquireError::Cancelled)));
    });
    assert!(matches!(client.mutex("a").cancelled_by(&token).acquire().map(drop), Err(AcquireError::Cancelled)));
    let outcomes = || -> Vec<_> {
        let outcome = |told: &Event| {
            let Event::NotAcquired { outcome, .. } = told else { return told.name() };
            outcome.name()
        };
        log.all().iter().map(outcome).collect()
    };
    wait_for("all to be told", || (outcomes().len() == 3).then_some(()));
    assert_eq!(outcomes(), ["dropped", "cancelled", "cancelled"]);
}

/// The clock is moved by hand, so that this takes no ten seconds.
#[test]
fn both_facades_report_a_long_wait_and_the_holder() {
    let _watchdog = Watchdog::over_this_test();
    let runtime = Runtime::new().unwrap();
    let _entered = runtime.enter();
    let (clock, log) = (ManualClock::new(), Arc::new(Log::default()));
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let holder = blocking::Client::builder(Arc::new(store.blocking())).clock(Arc::new(clock.clone()));
    let on_threads = blocking::Client::builder(Arc::new(store.blocking())).clock(Arc::new(clock.clone()));
    let on_tokio = leasehold::Client::builder(Arc::new(store.nonblocking())).clock(Arc::new(clock.clone()));
    let on_threads = on_threads.observer(Arc::clone(&log) as Arc<dyn Observer>).build().unwrap();
    let on_tokio = on_tokio.observer(Arc::clone(&log) as Arc<dyn Observer>).build().unwrap();
    let held = holder.build().unwrap().mutex("a").why("testing").acquire().unwrap();
    let waiting = [
        thread::spawn(move || on_threads.mutex("a").acquire().map(|guard| guard.fencing_token())),
        thread::spawn(move || runtime.block_on(on_tokio.mutex("a").acquire()).map(|guard| guard.fencing_token())),
    ];
    let told = wait_for("both to be told of", || {
        clock.advance(Duration::from_secs(1));
        Some(log.all()).filter(|told| told.len() == 2)
    });
    for event in told {
        let text = event.to_string();
        // On a busy machine the clock moves on before the waiter looks.
        assert!(text.starts_with("still waiting for \"a\" after 1") && text.contains("testing"), "{text}");
    }
    held.release().unwrap();
    for waiting in waiting {
        waiting.join().unwrap().unwrap();
    }
}

/// Takes another lock for a moment whenever a lock was acquired.
struct TakesMore(OnceLock<blocking::Client>, Log);

impl Observer for TakesMore {
    fn observe(&self, event: &Event) {
        self.1.observe(event);
        if let (Some(client), Some("a")) = (self.0.get(), event.lock().map(|lock| lock.as_str())) {
            assert!(client.mutex("a").store_error().is_none());
            client.mutex("b").try_acquire().unwrap().unwrap().release().unwrap();
        }
    }
}

#[test]
fn an_observer_may_use_its_client() {
    let _watchdog = Watchdog::over_this_test();
    let observer = Arc::new(TakesMore(OnceLock::new(), Log::default()));
    let builder = blocking::Client::builder(Arc::new(MemoryStore::default().blocking()));
    let client = builder.observer(Arc::clone(&observer) as Arc<dyn Observer>).build().unwrap();
    assert!(observer.0.set(client.clone()).is_ok());
    client.mutex("a").acquire().unwrap().release().unwrap();
    assert_eq!(observer.1.names(), ["acquired", "acquired", "released", "released", "acquired", "released"]);
}

struct Panics;

impl Observer for Panics {
    fn observe(&self, event: &Event) {
        assert!(event.name().is_empty(), "on purpose");
    }
}

#[test]
fn a_panic_of_an_observer_reaches_neither_facade() {
    let _watchdog = Watchdog::over_this_test();
    let (store, log) = (MemoryStore::default(), Arc::new(Log::default()));
    let client = blocking::Client::builder(Arc::new(store.blocking())).observer(Arc::new(Panics));
    let client = client.observer(Arc::clone(&log) as Arc<dyn Observer>).build().unwrap();
    let guard = client.mutex("a").acquire().unwrap();
    guard.verify().unwrap();
    guard.release().unwrap();

    Runtime::new().unwrap().block_on(async {
        let client = leasehold::Client::builder(Arc::new(store.nonblocking())).observer(Arc::new(Panics));
        let client = client.observer(Arc::clone(&log) as Arc<dyn Observer>).build().unwrap();
        let guard = client.mutex("a").acquire().await.unwrap();
        guard.verify().await.unwrap();
        guard.release().await.unwrap();
        client.close().await;
    });
    log.ends_with("released");
    assert_eq!(log.names(), ["acquired", "released", "acquired", "released"], "others are told all the same");
}
