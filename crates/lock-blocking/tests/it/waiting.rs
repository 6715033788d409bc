use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use lock_blocking::Client;
use lock_core::{AcquireError, ErrorKind, Holder, Moment, OnUnavailable, Operation, TryAcquireError};
use lock_host::{Clock, ManualClock};
use lock_memory::faults::Fault;

use crate::support::{Ask, Bench, Hooked, PATIENCE, until};

const SECOND: Duration = Duration::from_secs(1);

/// A clock that counts how often the thread named "waiter" looks.
#[derive(Debug)]
struct Watched {
    clock: ManualClock,
    looks: AtomicU64,
}

impl Clock for Watched {
    fn now(&self) -> Moment {
        let now = self.clock.now();
        self.looks.fetch_add(u64::from(thread::current().name() == Some("waiter")), Ordering::SeqCst);
        now
    }

    fn on_leap(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.clock.on_leap(wake);
    }
}

#[test]
fn busy_is_an_answer() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    let guard = one.mutex("a").acquire().unwrap();
    assert!(one.mutex("a").try_acquire().unwrap().is_none());
    assert!(two.mutex("a").try_acquire().unwrap().is_none());
    drop(guard);
    assert!(one.mutex("a").try_acquire().unwrap().is_some());
}

#[test]
fn a_wait_that_is_over_names_the_holder_and_leaves_nothing() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    let guard = one.mutex("a").why("nightly").acquire().unwrap();
    let waiting = thread::spawn(move || two.mutex("a").wait(5 * SECOND).acquire());
    until(|| bench.faults.ran(Operation::Acquire) >= 2);
    bench.clock.advance(5 * SECOND);
    let error = waiting.join().unwrap().unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, AcquireError::TimedOut { .. }) && text.contains("nightly") && text.contains("5s"),
        "{text}"
    );
    guard.release().unwrap();
    assert!(bench.is_free("a"), "a waiter clears its place before it returns");
}

#[test]
fn a_waiter_that_times_out_leaves_the_holders_release_to_others() {
    let bench = Bench::new();
    let (sender, releases) = mpsc::channel();
    let backend = Hooked::new(bench.store.blocking(), move |ask: Ask<'_>| {
        if let Ask::Release(..) = ask {
            sender.send(thread::current().name().map(str::to_owned)).unwrap();
        }
        Ok(())
    });
    let clock = Arc::new(Watched { clock: bench.clock.clone(), looks: AtomicU64::new(0) });
    let shared: Arc<dyn Clock> = Arc::<Watched>::clone(&clock);
    let client = Client::builder(Arc::new(backend)).clock(shared).build().unwrap();
    let guard = client.mutex("a").max_hold(5 * SECOND).acquire().unwrap();
    let (mutex, waiter) = (client.mutex("a").wait(5 * SECOND), thread::Builder::new().name("waiter".into()));
    let waiting = waiter.spawn(move || mutex.acquire()).unwrap();
    // It looks when it begins, and again when it joins the line.
    until(|| clock.looks.load(Ordering::SeqCst) == 2);
    bench.clock.advance(5 * SECOND);
    let released_by = releases.recv_timeout(PATIENCE).expect("a release of what was held for too long");
    assert_eq!(released_by.as_deref(), Some("leasehold-driver"));
    assert!(waiting.join().unwrap().is_err(), "its time was over");
    drop(guard);
}

#[test]
fn many_waiters_of_several_clients_all_get_their_turn_alone() {
    let store = lock_memory::MemoryStore::default();
    let (inside, highest) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            let client = Client::new(Arc::new(store.blocking())).unwrap();
            for _ in 0..5 {
                let (mutex, inside, highest) = (client.mutex("a"), &inside, &highest);
                scope.spawn(move || {
                    for _ in 0..10 {
                        let guard = mutex.acquire().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                        let token = guard.fencing_token().get();
                        assert!(highest.swap(token, Ordering::SeqCst) < token);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        }
    });
}

#[test]
fn a_try_names_the_holder() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    let guard = one.mutex("a").why("the nightly import").acquire().unwrap();
    for client in [&one, &two] {
        let Err(TryAcquireError::Busy(busy)) = client.mutex("a").try_acquire_or_holder() else { panic!("it is free") };
        let Some(Holder::Leasehold { tokens, note }) = &busy.holder else { panic!("{busy:?}") };
        assert_eq!((tokens.low(), note.why()), (guard.fencing_token(), "the nightly import"));
        assert!(busy.to_string().starts_with("the lock \"a\" is not free; ") && busy.to_string().contains(note.host()));
    }
    guard.release().unwrap();
    assert!(two.mutex("a").try_acquire_or_holder().is_ok());
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Denied));
    let failed = one.mutex("a").try_acquire_or_holder();
    assert!(matches!(failed, Err(TryAcquireError::Failed(AcquireError::Backend(_)))), "the store did not say");
}

#[test]
fn max_requests_ends_like_a_wait() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(3600 * SECOND).acquire().unwrap();
    let client = bench.client();
    let asked = bench.faults.calls(Operation::Acquire);
    let outcome = client.mutex("a").max_requests(1).acquire().map(drop);
    assert!(matches!(outcome, Err(AcquireError::TimedOut { holder: Some(_), .. })), "{outcome:?}");
    assert_eq!(bench.faults.calls(Operation::Acquire), asked + 1);
    let mutex = client.mutex("a").max_requests(3);
    let waiter = thread::spawn(move || mutex.acquire().map(drop));
    until(|| {
        bench.clock.advance(SECOND);
        waiter.is_finished()
    });
    let outcome = waiter.join().unwrap();
    assert!(matches!(outcome, Err(AcquireError::TimedOut { holder: Some(_), .. })), "{outcome:?}");
    assert_eq!(bench.faults.calls(Operation::Acquire), asked + 4);
    assert!(guard.check().is_ok());
    bench.faults.fail_all(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    let outcome = client.mutex("a").max_requests(1).acquire().map(drop);
    assert!(matches!(outcome, Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Unreachable));
    assert!(matches!(client.mutex("a").max_requests(0).acquire(), Err(AcquireError::Invalid(_))));
    bench.faults.heal_everything();
    guard.release().unwrap();
    bench.becomes_free("a");
}

#[test]
fn errors_that_pass_are_waited_out() {
    let bench = Bench::new();
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    bench.faults.fail_next(Operation::Acquire, Fault::LostReply);
    let client = bench.client();
    let mutex = client.mutex("a").on_unavailable(OnUnavailable::Wait);
    let waiting = thread::spawn(move || mutex.acquire().unwrap().fencing_token().get());
    for calls in 1..=3 {
        until(|| bench.faults.calls(Operation::Acquire) >= calls);
        bench.clock.advance(SECOND);
    }
    assert_eq!(waiting.join().unwrap(), 1, "the lost grant is the same owner's");
}

#[test]
fn a_store_that_stays_away_ends_a_wait_by_default() {
    let bench = Bench::new();
    bench.faults.fail_all(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    let client = bench.client();
    let waiting = thread::spawn(move || client.mutex("a").acquire().map(drop));
    until(|| bench.faults.calls(Operation::Acquire) >= 1);
    until(|| {
        bench.clock.advance(SECOND / 10);
        waiting.is_finished()
    });
    let error = waiting.join().unwrap().unwrap_err();
    assert!(matches!(&error, AcquireError::Backend(error) if error.kind() == ErrorKind::Unreachable), "{error}");
    assert!(error.to_string().contains("set `on_unavailable(OnUnavailable::Wait)`"), "{error}");
}

#[test]
fn a_waiter_can_learn_why_the_store_fails() {
    let bench = Bench::new();
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unavailable));
    let client = bench.client();
    let mutex = client.mutex("a");
    assert!(mutex.store_error().is_none(), "nobody waits");
    let waiting = thread::spawn({
        let mutex = mutex.clone();
        move || mutex.acquire().unwrap()
    });
    until(|| mutex.store_error().is_some_and(|error| error.kind() == ErrorKind::Unavailable));
    assert!(client.mutex("b").store_error().is_none());
    bench.clock.advance(SECOND);
    let guard = waiting.join().unwrap();
    assert!(mutex.store_error().is_none(), "the store answered");
    drop(guard);
}

#[test]
fn permanent_errors_and_errors_of_a_try_are_returned() {
    let bench = Bench::new();
    let client = bench.client();
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Denied));
    assert!(
        matches!(client.mutex("a").acquire(), Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Denied)
    );
    bench.faults.fail_next(Operation::Acquire, Fault::LostReply);
    assert!(
        matches!(client.mutex("a").try_acquire(), Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Timeout)
    );
    assert!(bench.is_free("a"), "the release came before the error was told");
}

#[test]
fn a_release_that_failed_is_repeated_in_the_background() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    assert!(guard.release().is_err());
    assert!(!bench.is_free("a"));
    bench.clock.advance(SECOND);
    bench.becomes_free("a");
}

#[test]
fn a_backend_that_panics_does_not_block_the_lock() {
    let calls = AtomicU64::new(0);
    let backend = Hooked::new(lock_memory::blocking::Memory::new(), move |ask: Ask<'_>| {
        assert!(!matches!(ask, Ask::Acquire(..)) || calls.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
        Ok(())
    });
    let client = Client::new(Arc::new(backend)).unwrap();
    let error = client.mutex("a").acquire().unwrap_err();
    assert!(matches!(error, AcquireError::Backend(error) if error.kind() == ErrorKind::Protocol));
    assert!(client.mutex("a").try_acquire().unwrap().is_some());
}

/// Many other names are used and forgotten. A wait, a hold and an unanswered release continue meanwhile.
#[test]
fn a_station_with_something_going_on_is_kept() {
    let bench = Bench::new();
    let (client, holder) = (bench.client(), bench.client());
    let held = client.mutex("held").acquire().unwrap();
    let waited_for = holder.mutex("waited for").acquire().unwrap();
    let mutex = client.mutex("waited for");
    let asked = bench.faults.ran(Operation::Acquire);
    let waiter = thread::spawn(move || mutex.acquire().map(|guard| guard.release().is_ok()));
    until(|| bench.faults.ran(Operation::Acquire) > asked);
    let pending = client.mutex("pending").acquire().unwrap();
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    assert!(pending.release().is_err());
    for n in 0..5000 {
        client.mutex(format!("{n}")).acquire().unwrap().release().unwrap();
    }
    waited_for.release().unwrap();
    until(|| waiter.is_finished());
    assert!(waiter.join().unwrap().unwrap());
    assert!(!bench.is_free("pending"));
    bench.clock.advance(SECOND);
    bench.becomes_free("pending");
    assert!(client.mutex("held").try_acquire().unwrap().is_none() && held.check().is_ok());
}
