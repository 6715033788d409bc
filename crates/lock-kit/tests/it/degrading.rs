//! A lock that degrades to one of this process, in both facades.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{AcquireError, ErrorKind, LossReason, Operation};
use lock_host::{CancelToken, Event, Observer};
use lock_kit::{Scope, blocking, nonblocking};
use lock_memory::faults::{Fault, Faulty};
use tokio::task::spawn_blocking;

use crate::shelf::Shelf;
use crate::support::{Bench, Store, until};

const AWAY: Fault = Fault::Refused(ErrorKind::Unreachable);
const SECOND: Duration = Duration::from_secs(1);

/// An observer's events of degraded holds, and of waits that ended.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Observer for Told {
    fn observe(&self, event: &Event) {
        if let Event::Degraded { lock, error, .. } = event {
            assert_eq!((event.name(), event.lock(), event.token()), ("degraded", Some(lock), None));
            self.0.lock().unwrap().push(format!("{lock} degraded: {:?}", error.kind()));
        } else if let Event::NotAcquired { lock, .. } = event {
            self.0.lock().unwrap().push(format!("{lock} not acquired"));
        }
    }
}

impl Told {
    fn by_tokio(&self, bench: &Bench) -> lock_async::Client {
        let backend = Faulty::new(bench.store.nonblocking(), &bench.faults);
        let builder = lock_async::Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone()));
        builder.observer(Arc::new(self.clone())).build().unwrap()
    }

    fn by_threads(&self, bench: &Bench) -> lock_blocking::Client {
        let backend = Faulty::new(bench.store.blocking(), &bench.faults);
        let builder = lock_blocking::Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone()));
        builder.observer(Arc::new(self.clone())).build().unwrap()
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Lets the time of the bench pass until this is done.
async fn while_time_passes<T>(bench: &Bench, step: Duration, done: impl Future<Output = T>) -> T {
    let mut done = std::pin::pin!(done);
    for _ in 0..10_000 {
        match tokio::time::timeout(Duration::from_millis(2), &mut done).await {
            Ok(value) => return value,
            Err(_) => bench.clock.advance(step),
        }
    }
    panic!("it is not done");
}

#[tokio::test]
async fn while_the_store_is_away_a_guard_excludes_this_process_only_and_stays_so() {
    use nonblocking::Kit;
    let (bench, told) = (Bench::new(), Told::default());
    let (one, two) = (told.by_tokio(&bench), bench.tokio());
    bench.faults.fail_everything(AWAY);
    let guard = one.degrading("a").try_acquire().await.unwrap().unwrap();
    assert_eq!((guard.scope(), guard.fencing_token(), guard.lease_id()), (Scope::Process, None, None));
    assert_eq!(guard.error().map(|error| error.kind()), Some(ErrorKind::Unreachable));
    assert_eq!((guard.name().as_str(), guard.remaining(), guard.check()), ("a", None, Ok(())));
    assert!(guard.at_store().is_none());
    let told_of = told.take();
    assert_eq!(told_of, ["a not acquired", "a not acquired", "a degraded: Unreachable"]);
    bench.faults.heal_everything();
    bench.clock.advance(60 * SECOND);
    // The store is back. Others of this process still wait, also those of another client; another process does not.
    assert!(two.degrading("a").try_acquire().await.unwrap().is_none());
    let impatient = two.degrading("a").wait(Duration::from_millis(20));
    let error = while_time_passes(&bench, Duration::from_millis(5), impatient.acquire()).await.unwrap_err();
    assert!(matches!(&error, AcquireError::TimedOut { holder: None, .. }), "{error}");
    assert_eq!(bench.free(&["a"]), ["a"], "the guard did not turn into one of the store");
    assert_eq!((guard.scope(), guard.check()), (Scope::Process, Ok(())));
    guard.release().await.unwrap();
    let guard = two.degrading("a").try_acquire().await.unwrap().unwrap();
    assert_eq!((guard.scope(), guard.error()), (Scope::Store, None));
    assert_eq!(guard.fencing_token(), guard.at_store().map(|guard| guard.fencing_token()));
    assert!(guard.fencing_token().is_some() && guard.lease_id().is_some() && bench.free(&["a"]).is_empty());
    guard.release().await.unwrap();
    assert!(told.take().is_empty());
}

#[tokio::test]
async fn a_wait_ends_with_a_degraded_guard_once_the_store_has_been_away_for_an_operation_timeout() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let locks = bench.tokio();
    bench.faults.fail_everything(AWAY);
    let began = lock_host::Clock::now(&bench.clock);
    let guard = while_time_passes(&bench, Duration::from_millis(20), locks.degrading("a").acquire()).await.unwrap();
    assert_eq!(guard.scope(), Scope::Process);
    assert!(lock_host::Clock::now(&bench.clock).since(began) >= SECOND, "a short outage is waited out");
    guard.release().await.unwrap();
    // What it has found is believed no longer.
    bench.clock.advance(2 * SECOND);
    let (lock, healed) = (locks.degrading("a"), bench.faults.clone());
    let acquiring = tokio::spawn(async move { lock.acquire().await.unwrap().scope() });
    let calls = bench.faults.calls(Operation::Acquire);
    until("a request to fail", || bench.faults.calls(Operation::Acquire) > calls).await;
    healed.heal_everything();
    let scope = while_time_passes(&bench, Duration::from_millis(20), acquiring).await.unwrap();
    assert_eq!(scope, Scope::Store);
}

/// The store answers once the wait is over, which is no sign that it is away: what it says counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_too_short_for_an_answer_does_not_degrade() {
    let wait = Duration::from_millis(10);
    for threads in [false, true] {
        for held in [false, true] {
            let (bench, told) = (Bench::new(), Told::default());
            let other = bench.plain();
            let other = spawn_blocking(move || held.then(|| other.mutex("a").acquire().unwrap())).await.unwrap();
            let calls = bench.faults.calls(Operation::Acquire);
            bench.faults.hold(Operation::Acquire);
            let (tasks, plain) = (told.by_tokio(&bench), told.by_threads(&bench));
            let acquiring = tokio::spawn(async move {
                if threads {
                    let lock = blocking::Kit::degrading(&plain, "a").wait(wait);
                    spawn_blocking(move || lock.acquire().map(|guard| guard.scope())).await.unwrap()
                } else {
                    let lock = nonblocking::Kit::degrading(&tasks, "a").wait(wait);
                    lock.acquire().await.map(|guard| guard.scope())
                }
            });
            until("the claim", || bench.faults.calls(Operation::Acquire) > calls).await;
            bench.clock.advance(2 * wait);
            until("the end of the wait", || told.take() == ["a not acquired"]).await;
            bench.faults.let_go(Operation::Acquire);
            match while_time_passes(&bench, Duration::from_millis(1), acquiring).await.unwrap() {
                Ok(scope) => assert!(scope == Scope::Store && !held),
                Err(AcquireError::TimedOut { holder, waited, .. }) => {
                    assert!(held && holder.is_some() && waited >= wait)
                }
                Err(error) => panic!("{error}"),
            }
            spawn_blocking(move || drop(other)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn errors_that_last_are_errors_and_one_failed_request_does_not_degrade() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let lock = bench.tokio().degrading("a");
    bench.faults.fail_all(Operation::Acquire, Fault::Refused(ErrorKind::Denied));
    for error in [lock.try_acquire().await.map(drop), lock.acquire().await.map(drop)] {
        assert!(matches!(&error, Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Denied), "{error:?}");
    }
    bench.faults.heal_everything();
    bench.faults.fail_next(Operation::Acquire, AWAY);
    let guard = lock.try_acquire().await.unwrap().unwrap();
    assert_eq!(guard.scope(), Scope::Store);
    assert!(matches!(bench.tokio().degrading("").acquire().await, Err(AcquireError::Invalid(_))));
}

#[tokio::test]
async fn a_guard_of_the_store_can_be_lost_and_keeps_others_of_this_process_out_until_it_is_gone() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let lock = bench.tokio().degrading("a").max_hold(5 * SECOND);
    let guard = lock.acquire().await.unwrap();
    bench.clock.advance(5 * SECOND);
    assert_eq!(guard.lost().await.reason, LossReason::MaxHold);
    assert!(guard.check().is_err() && guard.remaining() == Some(Duration::ZERO));
    assert!(lock.try_acquire().await.unwrap().is_none(), "what works under the lost guard may not have stopped");
    assert!(guard.release().await.is_err());
    until("the release of the lost lease", || bench.free(&["a"]) == ["a"]).await;
    assert!(lock.try_acquire().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_threads_share_one_line() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (locks, threads) = (bench.tokio(), bench.plain());
    bench.faults.fail_everything(AWAY);
    let guard = locks.degrading("a").try_acquire().await.unwrap().unwrap();
    let waiting = spawn_blocking(move || blocking::Kit::degrading(&threads, "a").acquire().unwrap().scope());
    let task = tokio::spawn({
        let lock = locks.degrading("a");
        async move { lock.try_acquire().await.unwrap().is_none() }
    });
    assert!(task.await.unwrap() && !waiting.is_finished());
    bench.faults.heal_everything();
    // What the first one has found is believed no longer.
    bench.clock.advance(2 * SECOND);
    guard.release().await.unwrap();
    assert_eq!(while_time_passes(&bench, Duration::from_millis(20), waiting).await.unwrap(), Scope::Store);
}

/// One that finds the store away saves all behind it the time.
#[tokio::test(flavor = "multi_thread")]
async fn one_finding_serves_the_whole_line() {
    for threads in [false, true] {
        let bench = Bench::new();
        let (tasks, plain) = (bench.tokio(), bench.plain());
        bench.faults.fail_everything(AWAY);
        let began = lock_host::Clock::now(&bench.clock);
        let scope = |_| {
            let (tasks, plain) = (tasks.clone(), plain.clone());
            tokio::spawn(async move {
                if threads {
                    let lock = blocking::Kit::degrading(&plain, "a").wait(5 * SECOND);
                    spawn_blocking(move || lock.acquire().map(|guard| guard.scope())).await.unwrap()
                } else {
                    let lock = nonblocking::Kit::degrading(&tasks, "a").wait(5 * SECOND);
                    lock.acquire().await.map(|guard| guard.scope())
                }
            })
        };
        let line: Vec<_> = (0..8).map(scope).collect();
        for one in line {
            let outcome = while_time_passes(&bench, Duration::from_millis(5), one).await.unwrap();
            assert_eq!(outcome.map_err(|error| error.to_string()), Ok(Scope::Process));
        }
        let took = lock_host::Clock::now(&bench.clock).since(began);
        assert!(took < 4 * SECOND, "{took:?}: they found out one after the other");
    }
}

/// Callers one after the other, and under other names, believe it as well.
#[tokio::test(flavor = "multi_thread")]
async fn one_finding_serves_all_names_of_the_client_until_the_store_answers() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let locks = bench.tokio();
    bench.faults.fail_everything(AWAY);
    drop(while_time_passes(&bench, Duration::from_millis(20), locks.degrading("a").acquire()).await.unwrap());
    let calls = bench.faults.calls(Operation::Acquire);
    for name in ["a", "b"] {
        assert_eq!(locks.degrading(name).acquire().await.unwrap().scope(), Scope::Process);
        assert_eq!(locks.degrading(name).try_acquire().await.unwrap().unwrap().scope(), Scope::Process);
    }
    assert_eq!(bench.faults.calls(Operation::Acquire), calls, "none of them asks");
    bench.faults.heal_everything();
    bench.clock.advance(2 * SECOND);
    assert_eq!(locks.degrading("c").acquire().await.unwrap().scope(), Scope::Store, "one asks, and the store answers");
    assert_eq!(locks.degrading("b").acquire().await.unwrap().scope(), Scope::Store);
}

/// A caller that did without the store after one failed request has found no outage that lasts.
#[tokio::test]
async fn what_a_single_flight_found_degrades_nobody() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (locks, shelf) = (bench.tokio(), Shelf::new(&bench.clock));
    let flight = locks.single_flight("key").stale_for(30 * SECOND).jitter_percent(0);
    let value = async |computed| flight.get_or_compute(&shelf, async || Ok(Some(computed))).await.unwrap();
    assert_eq!(value(1).await, Some(1));
    bench.clock.advance(60 * SECOND);
    bench.faults.fail_next(Operation::Acquire, AWAY);
    assert_eq!(value(2).await, Some(1), "the stale value");
    assert_eq!(locks.degrading("a").acquire().await.unwrap().scope(), Scope::Store);
}

fn is_away<T: std::fmt::Debug>(outcome: Result<T, AcquireError>) -> bool {
    matches!(&outcome, Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Unreachable)
}

/// Nobody holds the lock while the first one still finds out: then those behind it hear of the store, and not of a holder.
#[tokio::test]
async fn the_line_of_this_process_is_no_holder_while_the_store_is_away() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let locks = bench.tokio();
    let (first, lock) = (locks.degrading("a"), locks.degrading("a"));
    bench.faults.fail_everything(AWAY);
    let calls = bench.faults.calls(Operation::Acquire);
    let asking = tokio::spawn(async move { first.acquire().await });
    until("the claim of the first one", || bench.faults.calls(Operation::Acquire) > calls).await;
    assert!(is_away(lock.try_acquire().await), "nobody holds it");
    let impatient = lock.clone().wait(Duration::from_millis(20));
    assert!(is_away(while_time_passes(&bench, Duration::from_millis(2), impatient.acquire()).await));
    let guard = while_time_passes(&bench, Duration::from_millis(20), asking).await.unwrap().unwrap();
    assert_eq!(guard.scope(), Scope::Process);
    assert!(is_away(while_time_passes(&bench, Duration::from_millis(2), impatient.acquire()).await));
    assert!(lock.try_acquire().await.unwrap().is_none(), "a guard of this process is there");
}

#[test]
fn the_line_of_this_process_is_no_holder_for_threads_while_the_store_is_away() {
    use blocking::Kit;
    let bench = Bench::new();
    let (first, lock) = (bench.plain().degrading("a"), bench.plain().degrading("a"));
    bench.faults.fail_everything(AWAY);
    std::thread::scope(|scope| {
        let calls = bench.faults.calls(Operation::Acquire);
        let asking = scope.spawn(|| first.acquire());
        while bench.faults.calls(Operation::Acquire) == calls {
            std::thread::yield_now();
        }
        assert!(is_away(lock.try_acquire()), "nobody holds it");
        assert!(is_away(lock.clone().wait(Duration::ZERO).acquire()));
        while !asking.is_finished() {
            bench.clock.advance(Duration::from_millis(20));
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(asking.join().unwrap().unwrap().scope(), Scope::Process);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn close_ends_the_wait_for_another_guard_of_this_process() {
    use nonblocking::Kit;
    let bench = Bench::new();
    let (holder, locks, threads) = (bench.tokio(), bench.tokio(), bench.plain());
    let (by_task, by_thread) = (locks.degrading("a"), blocking::Kit::degrading(&threads, "a"));
    let guard = holder.degrading("a").acquire().await.unwrap();
    let task = tokio::spawn(async move { by_task.acquire().await.map(drop) });
    let thread = spawn_blocking(move || by_thread.acquire().map(drop));
    // Long enough for both to wait, as a rule.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!task.is_finished() && !thread.is_finished());
    locks.close().await;
    threads.close();
    until("the ends of both waits", || task.is_finished() && thread.is_finished()).await;
    assert_eq!([task.await.unwrap(), thread.await.unwrap()], [Err(AcquireError::Closed), Err(AcquireError::Closed)]);
    guard.release().await.unwrap();
}

#[test]
fn threads_wait_for_each_other_in_turn_and_can_be_cancelled() {
    use blocking::Kit;
    let bench = Bench::new();
    let locks = bench.plain();
    bench.faults.fail_everything(AWAY);
    let guard = locks.degrading("a").try_acquire().unwrap().unwrap();
    assert_eq!((guard.scope(), guard.fencing_token(), guard.lost_within(SECOND / 100)), (Scope::Process, None, None));
    let cancel = CancelToken::new();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| locks.degrading("a").cancelled_by(&cancel).acquire().map(drop));
        let impatient = scope.spawn(|| locks.degrading("a").wait(Duration::ZERO).acquire().map(drop));
        assert!(is_away(impatient.join().unwrap()));
        cancel.cancel();
        assert!(matches!(waiting.join().unwrap(), Err(AcquireError::Cancelled)));
        let next = scope.spawn(|| locks.degrading("a").try_acquire().unwrap().map(|guard| guard.scope()));
        assert_eq!(next.join().unwrap(), None);
        guard.release().unwrap();
        let next = scope.spawn(|| locks.degrading("a").try_acquire().unwrap().map(|guard| guard.scope()));
        assert_eq!(next.join().unwrap(), Some(Scope::Process));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn it_works_on_every_store() {
    for store in Store::with_quorum() {
        let (one, other) = (store.tokio().await, store.plain());
        let lock = nonblocking::Kit::degrading(&one, "a");
        let guard = lock.acquire().await.unwrap();
        assert_eq!(guard.scope(), Scope::Store);
        guard.release().await.unwrap();
        let scope = spawn_blocking(move || {
            let guard = blocking::Kit::degrading(&other, "a").acquire().unwrap();
            let scope = guard.scope();
            guard.release().map(|()| scope)
        });
        assert_eq!(scope.await.unwrap(), Ok(Scope::Store));
    }
}
