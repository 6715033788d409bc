use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_core::{AcquireError, ErrorKind, Holder, OnUnavailable, Operation, TryAcquireError};
use lock_memory::faults::Fault;

use crate::support::{Bench, PATIENCE, until};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn busy_is_an_answer() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    let guard = one.mutex("a").acquire().await.unwrap();
    assert!(one.mutex("a").try_acquire().await.unwrap().is_none());
    assert!(two.mutex("a").try_acquire().await.unwrap().is_none());
    drop(guard);
    assert!(one.mutex("a").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_wait_that_is_over_names_the_holder_and_leaves_nothing() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    let guard = one.mutex("a").why("nightly").acquire().await.unwrap();
    let waiting = tokio::spawn({
        let mutex = two.mutex("a").wait(5 * SECOND);
        async move { mutex.acquire().await }
    });
    until(|| bench.faults.ran(Operation::Acquire) >= 2).await;
    bench.clock.advance(5 * SECOND);
    let error = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, AcquireError::TimedOut { .. }) && text.contains("nightly") && text.contains("5s"),
        "{text}"
    );
    guard.release().await.unwrap();
    bench.becomes_free("a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_waiters_of_several_clients_all_get_their_turn_alone() {
    let store = lock_memory::MemoryStore::default();
    let (inside, highest, tasks) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), 40);
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = lock_async::Client::new(Arc::new(store.nonblocking())).unwrap();
        for _ in 0..tasks / 4 {
            let (mutex, inside, highest) = (client.mutex("a"), Arc::clone(&inside), Arc::clone(&highest));
            running.spawn(async move {
                for _ in 0..10 {
                    let guard = mutex.acquire().await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    assert!(highest.swap(guard.fencing_token().get(), Ordering::SeqCst) < guard.fencing_token().get());
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    }
    tokio::time::timeout(PATIENCE, running.join_all()).await.unwrap();
}

#[tokio::test]
async fn a_try_names_the_holder() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    let guard = one.mutex("a").why("the nightly import").acquire().await.unwrap();
    for client in [&one, &two] {
        let Err(TryAcquireError::Busy(busy)) = client.mutex("a").try_acquire_or_holder().await else {
            panic!("it is free")
        };
        let Some(Holder::Leasehold { tokens, note }) = &busy.holder else { panic!("{busy:?}") };
        assert_eq!((tokens.low(), note.why()), (guard.fencing_token(), "the nightly import"));
        assert!(busy.to_string().starts_with("the lock \"a\" is not free; ") && busy.to_string().contains(note.host()));
    }
    guard.release().await.unwrap();
    assert!(two.mutex("a").try_acquire_or_holder().await.is_ok());
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Denied));
    let failed = one.mutex("a").try_acquire_or_holder().await;
    assert!(matches!(failed, Err(TryAcquireError::Failed(AcquireError::Backend(_)))), "the store did not say");
}

#[tokio::test]
async fn max_requests_ends_like_a_wait() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(3600 * SECOND).acquire().await.unwrap();
    let client = bench.client();
    let asked = bench.faults.calls(Operation::Acquire);
    let outcome = client.mutex("a").max_requests(1).acquire().await.map(drop);
    assert!(matches!(outcome, Err(AcquireError::TimedOut { holder: Some(_), .. })), "{outcome:?}");
    assert_eq!(bench.faults.calls(Operation::Acquire), asked + 1);
    let mutex = client.mutex("a").max_requests(3);
    let waiter = tokio::spawn(async move { mutex.acquire().await.map(drop) });
    until(|| {
        bench.clock.advance(SECOND);
        waiter.is_finished()
    })
    .await;
    let outcome = waiter.await.unwrap();
    assert!(matches!(outcome, Err(AcquireError::TimedOut { holder: Some(_), .. })), "{outcome:?}");
    assert_eq!(bench.faults.calls(Operation::Acquire), asked + 4);
    assert!(guard.check().is_ok());
    bench.faults.fail_all(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    let outcome = client.mutex("a").max_requests(1).acquire().await.map(drop);
    assert!(matches!(outcome, Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Unreachable));
    assert!(matches!(client.mutex("a").max_requests(0).acquire().await, Err(AcquireError::Invalid(_))));
    bench.faults.heal_everything();
    guard.release().await.unwrap();
    bench.becomes_free("a").await;
}

#[tokio::test]
async fn errors_that_pass_are_waited_out() {
    let bench = Bench::new();
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    bench.faults.fail_next(Operation::Acquire, Fault::LostReply);
    let client = bench.client();
    let mutex = client.mutex("a").on_unavailable(OnUnavailable::Wait);
    let waiting = tokio::spawn(async move { mutex.acquire().await.map(|guard| guard.fencing_token().get()) });
    for calls in 1..=3 {
        until(|| bench.faults.calls(Operation::Acquire) >= calls).await;
        until(|| waiting.is_finished() || bench.faults.calls(Operation::Acquire) == calls).await;
        bench.clock.advance(SECOND);
    }
    assert_eq!(
        tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap(),
        1,
        "the lost grant is the same owner's"
    );
}

#[tokio::test]
async fn a_store_that_stays_away_ends_a_wait_by_default() {
    let bench = Bench::new();
    bench.faults.fail_all(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    let client = bench.client();
    let waiting = tokio::spawn(async move { client.mutex("a").acquire().await.map(drop) });
    until(|| bench.faults.calls(Operation::Acquire) >= 1).await;
    until(|| {
        bench.clock.advance(SECOND / 10);
        waiting.is_finished()
    })
    .await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(&error, AcquireError::Backend(error) if error.kind() == ErrorKind::Unreachable), "{error}");
    assert!(error.to_string().contains("set `on_unavailable(OnUnavailable::Wait)`"), "{error}");
}

#[tokio::test]
async fn a_waiter_can_learn_why_the_store_fails() {
    let bench = Bench::new();
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unavailable));
    let client = bench.client();
    let mutex = client.mutex("a");
    assert!(mutex.store_error().is_none(), "nobody waits");
    let waiting = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.unwrap() }
    });
    until(|| mutex.store_error().is_some_and(|error| error.kind() == ErrorKind::Unavailable)).await;
    assert!(client.mutex("b").store_error().is_none());
    bench.clock.advance(SECOND);
    let guard = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert!(mutex.store_error().is_none(), "the store answered");
    drop(guard);
}

#[tokio::test]
async fn permanent_errors_and_errors_of_a_try_are_returned() {
    let bench = Bench::new();
    let client = bench.client();
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Denied));
    assert!(
        matches!(client.mutex("a").acquire().await, Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Denied)
    );
    bench.faults.fail_next(Operation::Acquire, Fault::LostReply);
    assert!(
        matches!(client.mutex("a").try_acquire().await, Err(AcquireError::Backend(error)) if error.kind() == ErrorKind::Timeout)
    );
    bench.becomes_free("a").await;
}

/// Many other names are used and forgotten. A wait, a hold and an unanswered release continue meanwhile.
#[tokio::test]
async fn a_station_with_something_going_on_is_kept() {
    let bench = Bench::new();
    let (client, holder) = (bench.client(), bench.client());
    let held = client.mutex("held").acquire().await.unwrap();
    let waited_for = holder.mutex("waited for").acquire().await.unwrap();
    let mutex = client.mutex("waited for");
    let asked = bench.faults.ran(Operation::Acquire);
    let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap().release().await.is_ok() });
    until(|| bench.faults.ran(Operation::Acquire) > asked).await;
    let pending = client.mutex("pending").acquire().await.unwrap();
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    assert!(pending.release().await.is_err());
    for n in 0..5000 {
        client.mutex(format!("{n}")).acquire().await.unwrap().release().await.unwrap();
    }
    waited_for.release().await.unwrap();
    assert!(tokio::time::timeout(PATIENCE, waiter).await.unwrap().unwrap());
    assert!(!bench.is_free("pending").await);
    bench.clock.advance(SECOND);
    bench.becomes_free("pending").await;
    assert!(client.mutex("held").try_acquire().await.unwrap().is_none() && held.check().is_ok());
}
