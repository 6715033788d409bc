//! The feature `tracing`: events and spans without a line of code.
#![cfg(feature = "full")]
#![allow(clippy::unwrap_used, reason = "tests may")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::ManualClock;
use leasehold::memory::MemoryStore;
use leasehold::memory::faults::{Fault, Faults, Faulty};
use leasehold::{ErrorKind, blocking};
use test_support::bounds::{Watchdog, wait_for};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The fields of an event or a span.
type Fields = BTreeMap<String, String>;

/// Keeps what is emitted.
#[derive(Clone, Default)]
struct Kept {
    events: Arc<Mutex<Vec<(Level, Fields)>>>,
    spans: Arc<Mutex<BTreeMap<u64, Fields>>>,
    ids: Arc<AtomicU64>,
}

thread_local! {
    /// The spans that this thread is in.
    static INSIDE: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct Visitor<'a>(&'a mut Fields);

impl Visit for Visitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "leasehold"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::from([("span".to_owned(), span.metadata().name().to_owned())]);
        span.record(&mut Visitor(&mut fields));
        assert!(span.is_contextual(), "its parent is the span of the caller");
        self.spans.lock().unwrap().insert(id, fields);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Visitor(self.spans.lock().unwrap().get_mut(&span.into_u64()).unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Visitor(&mut fields));
        let span = INSIDE.with_borrow(|inside| inside.last().copied());
        let name = span.and_then(|span| self.spans.lock().unwrap()[&span].get("span").cloned());
        fields.extend(name.map(|name| ("inside".to_owned(), name)));
        self.events.lock().unwrap().push((*event.metadata().level(), fields));
    }

    fn enter(&self, span: &Id) {
        INSIDE.with_borrow_mut(|inside| inside.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        INSIDE.with_borrow_mut(|inside| assert_eq!(inside.pop(), Some(span.into_u64())));
    }
}

impl Kept {
    /// Waits for an event with this message, which is the last so far, except for requests that fail.
    #[track_caller]
    fn last(&self, message: &str) -> (Level, Fields) {
        wait_for(&format!("{message:?} to be emitted"), || {
            let events = self.events.lock().unwrap();
            let last = events.iter().rev().find(|(_, fields)| fields["message"] != "request failed")?;
            Some(last.clone()).filter(|(_, fields)| fields["message"] == message)
        })
    }

    fn failed_request(&self) -> (Level, Fields) {
        let events = self.events.lock().unwrap();
        events.iter().find(|(_, fields)| fields["message"] == "request failed").unwrap().clone()
    }
}

/// What is expected of an event: its level, and its fields but those that hold a time.
#[track_caller]
fn check((level, fields): (Level, Fields), expected: Level, names: &[&str]) {
    assert_eq!(level, expected, "{fields:?}");
    let given: Vec<_> = fields.keys().map(String::as_str).filter(|name| *name != "message").collect();
    assert_eq!(given, names, "{fields:?}");
    assert_eq!(fields["backend"], "memory");
    assert!(fields.get("lock").is_none_or(|lock| lock == "invoice:42"), "{fields:?}");
    assert!(fields.get("token").is_none_or(|token| token.parse::<u64>().is_ok()), "{fields:?}");
}

#[test]
fn each_event_is_traced_and_each_acquisition_a_span() {
    let _watchdog = Watchdog::over_this_test();
    let kept = Kept::default();
    tracing::subscriber::set_global_default(kept.clone()).unwrap();
    let (clock, faults) = (ManualClock::new(), Faults::new());
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let backend = Faulty::new(store.blocking(), &faults);
    let client = blocking::Client::builder(Arc::new(backend)).clock(Arc::new(clock.clone())).build().unwrap();
    let lock = client.mutex("invoice:42").ttl(Duration::from_secs(30));

    let guard = lock.acquire().unwrap();
    let token = guard.fencing_token().to_string();
    check(kept.last("acquired"), Level::DEBUG, &["backend", "inside", "lock", "token", "waited_ms"]);
    let span = kept.spans.lock().unwrap().values().next().unwrap().clone();
    let expected = [
        ("backend", "memory"),
        ("lock", "invoice:42"),
        ("outcome", "acquired"),
        ("span", "acquire"),
        ("token", &token),
    ];
    assert_eq!(span, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());

    faults.fail_everything(Fault::Refused(ErrorKind::Unreachable));
    clock.advance(Duration::from_secs(20));
    check(kept.last("store unavailable"), Level::WARN, &["backend", "error"]);
    check(kept.failed_request(), Level::DEBUG, &["backend", "error", "lock"]);
    faults.heal_everything();
    wait_for("the renewal", || {
        clock.advance(Duration::from_millis(100));
        (guard.remaining() > Duration::from_secs(25)).then_some(())
    });
    check(kept.last("renewed late"), Level::WARN, &["backend", "late_ms", "lock", "remaining_ms", "token"]);
    let back = kept.events.lock().unwrap().iter().rev().nth(1).unwrap().clone();
    check(back, Level::INFO, &["after_ms", "backend"]);

    faults.fail_everything(Fault::Refused(ErrorKind::Unavailable));
    assert!(guard.release().is_err());
    check(kept.last("release pending"), Level::WARN, &["backend", "error", "lock", "token"]);
    faults.heal_everything();
    wait_for("the release", || {
        clock.advance(Duration::from_millis(100));
        (kept.events.lock().unwrap().last().unwrap().1["message"] == "released").then_some(())
    });
    check(kept.last("released"), Level::DEBUG, &["backend", "held_ms", "lock", "token"]);

    let guard = lock.acquire().unwrap();
    faults.fail_everything(Fault::Refused(ErrorKind::Denied));
    assert!(guard.release().is_err());
    faults.heal_everything();
    check(kept.last("release given up"), Level::INFO, &["backend", "lock", "pending_ms", "token"]);
    clock.advance(Duration::from_secs(30));

    let guard = lock.clone().max_hold(Duration::from_secs(10)).acquire().unwrap();
    clock.advance(Duration::from_secs(10));
    check(kept.last("lost"), Level::ERROR, &["backend", "held_ms", "lock", "reason", "token"]);
    drop(guard);

    let holder = blocking::Client::builder(Arc::new(store.blocking())).clock(Arc::new(clock.clone())).build().unwrap();
    let held = holder.mutex("invoice:42").acquire().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    check(kept.last("not acquired"), Level::DEBUG, &["backend", "holder", "inside", "lock", "outcome", "waited_ms"]);
    let outcome = || kept.spans.lock().unwrap().values().next_back().unwrap()["outcome"].clone();
    assert_eq!(outcome(), "busy");
    faults.fail_everything(Fault::Refused(ErrorKind::Denied));
    assert!(lock.try_acquire().is_err());
    faults.heal_everything();
    check(kept.last("not acquired"), Level::WARN, &["backend", "error", "inside", "lock", "outcome", "waited_ms"]);
    assert_eq!(outcome(), "failed");
    let waiting = std::thread::spawn(move || lock.acquire().map(drop));
    wait_for("a long wait", || {
        clock.advance(Duration::from_secs(1));
        (kept.events.lock().unwrap().last().unwrap().1["message"] == "waiting long").then_some(())
    });
    check(kept.last("waiting long"), Level::WARN, &["backend", "holder", "inside", "lock", "waited_ms"]);
    drop(held);
    waiting.join().unwrap().unwrap();
}
