//! Stores that do not answer: how long each call waits, and which thread runs what.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lock_blocking::Client;
use lock_core::{AcquireError, Operation, Owner};
use lock_memory::MemoryStore;

use crate::support::{Ask, Bench, Hooked, PATIENCE, hang, until};

const SECOND: Duration = Duration::from_secs(1);
/// Far longer than any wait in these tests allows: code that waits for a lease to end fails.
const LONG: Duration = Duration::from_secs(600);
/// How late a busy machine may be.
const SLACK: Duration = Duration::from_secs(8);

/// A client with operation timeouts of a second, of a store that can be made to hang.
fn hanging() -> (Client, Arc<AtomicBool>) {
    let hangs = Arc::new(AtomicBool::new(false));
    let hung = Arc::clone(&hangs);
    let backend = Hooked::new(MemoryStore::default().blocking(), move |ask: Ask<'_>| {
        if hung.load(Ordering::SeqCst) { Err(hang(&ask)) } else { Ok(()) }
    });
    (Client::builder(Arc::new(backend)).op_timeout(Some(SECOND)).build().unwrap(), hangs)
}

#[test]
fn a_wait_is_two_operation_timeouts_late_at_most() {
    let (client, hangs) = hanging();
    hangs.store(true, Ordering::SeqCst);
    let (begin, wait) = (Instant::now(), 6 * SECOND);
    let error = client.mutex("a").ttl(LONG).wait(wait).acquire().unwrap_err();
    assert!(matches!(error, AcquireError::Backend(_)), "{error}");
    assert!(begin.elapsed() < wait + 2 * SECOND + SLACK, "{:?}", begin.elapsed());
}

#[test]
fn a_try_and_a_release_take_two_operation_timeouts_at_most() {
    let (client, hangs) = hanging();
    let guard = client.mutex("a").ttl(LONG).acquire().unwrap();
    hangs.store(true, Ordering::SeqCst);
    // Leaves releases behind that are repeated throughout.
    let other = client.mutex("b").ttl(LONG).wait(5 * SECOND);
    assert!(other.acquire().is_err());
    let begin = Instant::now();
    assert!(client.mutex("c").ttl(LONG).try_acquire().is_err());
    assert!(begin.elapsed() < 2 * SECOND + SLACK, "{:?}", begin.elapsed());
    let begin = Instant::now();
    assert!(guard.release().is_err());
    assert!(begin.elapsed() < SECOND + SLACK, "{:?}", begin.elapsed());
}

#[test]
fn closing_covers_all_locks_at_once() {
    let (client, hangs) = hanging();
    let guards: Vec<_> = (0..30).map(|n| client.mutex(format!("{n}")).ttl(LONG).acquire().unwrap()).collect();
    hangs.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    client.close();
    assert!(begin.elapsed() < 2 * SECOND + SLACK, "{:?}", begin.elapsed());
    assert!(guards.iter().all(|guard| guard.check().is_err()));
}

#[test]
fn closing_releases_every_lock_of_a_store_that_answers() {
    let bench = Bench::new();
    let client = bench.client();
    let guards: Vec<_> = (0..100).map(|n| client.mutex(format!("{n}")).acquire().unwrap()).collect();
    client.close();
    assert_eq!(bench.faults.ran(Operation::Release), 100);
    drop(guards);
    assert!(bench.is_free("99"));
}

/// Releases of these locks are not answered until the test lets them go.
#[derive(Default)]
struct Sick(Mutex<bool>, Condvar);

impl Sick {
    fn wait(&self) {
        let well = self.1.wait_timeout_while(self.0.lock().unwrap(), 3 * PATIENCE, |well| !*well).unwrap();
        assert!(!well.1.timed_out(), "the test never let the sick locks go");
    }

    fn heal(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

#[test]
fn locks_that_do_not_answer_do_not_delay_the_release_of_others() {
    let bench = Bench::new();
    let sick = Arc::new(Sick::default());
    let waiting = Arc::clone(&sick);
    let backend = Hooked::new(bench.store.blocking(), move |ask: Ask<'_>| {
        if matches!(&ask, Ask::Release(request, _) if request.name.as_str().starts_with("sick")) {
            waiting.wait();
        }
        Ok(())
    });
    let client = Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap();
    let names = ["sick 1", "sick 2", "sick 3", "well"];
    let _lost: Vec<_> =
        (1..).zip(names).map(|(n, name)| client.mutex(name).max_hold(n * SECOND).acquire().unwrap()).collect();
    names.iter().for_each(|_| bench.clock.advance(SECOND));
    bench.becomes_free("well");
    sick.heal();
    bench.becomes_free("sick 1");
}

/// A release that was not answered is repeated, but not by a thread that waits for something else.
#[test]
fn repeated_releases_are_run_in_the_background() {
    let bench = Bench::new();
    let refused = Arc::new(AtomicBool::new(true));
    let seen = Arc::new(Mutex::new((HashSet::<Owner>::new(), Vec::new())));
    let (fails, log) = (Arc::clone(&refused), Arc::clone(&seen));
    let backend = Hooked::new(bench.store.blocking(), move |ask: Ask<'_>| {
        let Ask::Release(request, _) = &ask else { return Ok(()) };
        let (owners, repeated_by) = &mut *log.lock().unwrap();
        if !owners.insert(request.owner) {
            repeated_by.push(thread::current().name().map(str::to_owned));
        }
        if fails.load(Ordering::SeqCst) { Err(crate::support::unanswered()) } else { Ok(()) }
    });
    let client = Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone())).chain(0).build().unwrap();
    let guard = client.mutex("a").acquire().unwrap();
    let mutex = client.mutex("a");
    let waiter = thread::spawn(move || mutex.acquire().map(|guard| guard.release().is_ok()));
    assert!(guard.release().is_err());
    let repeats = || seen.lock().unwrap().1.len();
    for repeat in 1..=3 {
        until(|| {
            bench.clock.advance(SECOND / 10);
            repeats() >= repeat
        });
    }
    refused.store(false, Ordering::SeqCst);
    until(|| {
        bench.clock.advance(SECOND / 10);
        waiter.is_finished()
    });
    assert!(waiter.join().unwrap().unwrap());
    let repeated_by = seen.lock().unwrap().1.clone();
    assert!(repeated_by.iter().all(|name| name.as_deref() == Some("leasehold-driver")), "{repeated_by:?}");
}

/// CloseSignal does not wait for a release that a background thread has begun and that never ends.
#[test]
fn closing_is_bounded_whatever_is_in_flight() {
    let bench = Bench::new();
    let sick = Arc::new(Sick::default());
    let (waiting, begun) = (Arc::clone(&sick), Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&begun);
    let backend = Hooked::new(bench.store.blocking(), move |ask: Ask<'_>| {
        if matches!(ask, Ask::Release(..)) {
            flag.store(true, Ordering::SeqCst);
            waiting.wait();
        }
        Ok(())
    });
    let client = Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap();
    let _guard = client.mutex("a").max_hold(SECOND).acquire().unwrap();
    bench.clock.advance(SECOND);
    until(|| begun.load(Ordering::SeqCst));
    let closing = thread::spawn(move || client.close());
    until(|| closing.is_finished());
    sick.heal();
    closing.join().unwrap();
}
