use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use futures_util::future::FutureExt;
use lock_async::{Client, Guard};
use lock_core::{AcquireError, BackendError, Effect, ErrorKind, LossReason, Operation, ReleaseRequest};
use lock_host::{Error, HoldError};
use lock_memory::faults::{Fault, Faulty};

use crate::support::{Bench, Hook, Hooked, Names, PATIENCE, operator, until};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_lock_is_held_and_released() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    assert!(guard.check().is_ok() && guard.remaining() > 29 * SECOND);
    assert!(guard.verify().await.is_ok());
    assert!(!bench.is_free("a").await);
    assert_eq!(guard.release().await, Ok(()));
    assert!(bench.is_free("a").await);
}

#[tokio::test]
async fn tokens_rise_and_dropping_releases_in_order() {
    let bench = Bench::new();
    let mutex = bench.client().mutex("a");
    let mut last = 0;
    for _ in 0..100 {
        let guard = mutex.try_acquire().await.unwrap().expect("the release before came first");
        assert!(guard.fencing_token().get() > last);
        last = guard.fencing_token().get();
    }
}

#[tokio::test]
async fn renewal_outlives_the_ttl() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").ttl(3 * SECOND).acquire().await.unwrap();
    for renewals in 1..=10 {
        bench.clock.advance(SECOND);
        until(|| bench.faults.ran(Operation::Renew) >= renewals && guard.remaining() > 2 * SECOND).await;
    }
    assert!(guard.check().is_ok());
    assert_eq!(bench.faults.calls(Operation::Renew), 10);
}

#[tokio::test]
async fn a_loss_is_reported_at_the_deadline_with_the_last_error() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").ttl(3 * SECOND).acquire().await.unwrap();
    bench.faults.fail_all(Operation::Renew, Fault::Refused(ErrorKind::Unreachable));
    bench.clock.advance(SECOND);
    until(|| bench.faults.calls(Operation::Renew) > 0).await;
    // The second one follows once the failure of the first one was heard.
    until(|| {
        bench.clock.advance(SECOND / 100);
        bench.faults.calls(Operation::Renew) > 1
    })
    .await;
    bench.clock.advance(2 * SECOND);
    assert!(guard.check().is_err());
    let lost = tokio::time::timeout(PATIENCE, guard.lost()).await.unwrap();
    assert!(matches!(lost.reason, LossReason::Expired(Some(_))), "{lost}");
    assert_eq!(guard.release().await, Err(HoldError::Lost(lost)));
}

/// Nobody has noticed any of the losses before.
#[tokio::test]
async fn a_release_tells_whether_the_lock_was_held_until_then() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").max_hold(SECOND).acquire().await.unwrap();
    bench.faults.hold(Operation::Release);
    bench.clock.advance(SECOND);
    let outcome = guard.release().await;
    assert!(matches!(&outcome, Err(HoldError::Lost(lost)) if lost.reason == LossReason::MaxHold), "{outcome:?}");
    bench.faults.let_go(Operation::Release);
    bench.becomes_free("a").await;
    let guard = client.mutex("a").acquire().await.unwrap();
    revoke(&client, &guard).await;
    let outcome = guard.release().await;
    assert!(matches!(&outcome, Err(HoldError::Lost(lost)) if lost.reason == LossReason::NotHeld), "{outcome:?}");
    let guard = client.mutex("a").acquire().await.unwrap();
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    let outcome = guard.release().await;
    assert!(matches!(&outcome, Err(HoldError::Backend(error)) if error.operation() == Operation::Release));
}

/// Ends the lease as an operator does, without the client.
async fn revoke(client: &Client, guard: &Guard) {
    client.inspect().unwrap().revoke(guard.name(), guard.fencing_token(), &operator(), SECOND).await.unwrap();
}

#[tokio::test]
async fn a_holder_that_asks_learns_who_revoked_its_lease() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    let inspect = client.inspect().unwrap();
    inspect.revoke(guard.name(), guard.fencing_token(), &operator(), SECOND).await.unwrap();
    assert!(guard.check().is_ok(), "checking is local");
    assert!(guard.verify().await.is_err());
    let lost = tokio::time::timeout(PATIENCE, guard.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::Revoked { by: operator() });
}

#[tokio::test]
async fn a_holder_learns_who_revoked_its_lease_when_it_is_renewed() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    revoke(&client, &guard).await;
    bench.clock.advance(11 * SECOND);
    let lost = tokio::time::timeout(PATIENCE, guard.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::Revoked { by: operator() });
    assert!(lost.to_string().ends_with("an operator ended its lease early: pid 1 on console (it hangs)"), "{lost}");
}

#[tokio::test]
async fn a_lease_is_renewed_when_asked_for() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    bench.clock.advance(5 * SECOND);
    assert!(guard.remaining() < 25 * SECOND, "no regular renewal is due yet");
    guard.renew().await.unwrap();
    assert!(guard.remaining() > 29 * SECOND);
    client.inspect().unwrap().revoke(guard.name(), guard.fencing_token(), &operator(), SECOND).await.unwrap();
    assert!(guard.renew().await.is_err() && guard.check().is_err());
}

#[tokio::test]
async fn max_hold_ends_a_hold_that_is_renewed() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(5 * SECOND).acquire().await.unwrap();
    bench.clock.advance(5 * SECOND);
    let lost = tokio::time::timeout(PATIENCE, guard.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::MaxHold);
    bench.becomes_free("a").await;
}

#[tokio::test]
async fn work_stops_when_the_lock_is_lost() {
    let bench = Bench::new();
    let client = bench.client();
    assert_eq!(client.mutex("a").run_while_held(async |guard| guard.fencing_token().get()).await.unwrap(), 1);
    let mutex = client.mutex("a").max_hold(SECOND);
    let work = mutex.run_while_held(async |_| {
        bench.clock.advance(SECOND);
        pending::<()>().await;
    });
    let outcome = tokio::time::timeout(PATIENCE, work).await.unwrap();
    assert!(matches!(outcome, Err(Error::Lost(_))));
    bench.becomes_free("a").await;
}

#[tokio::test]
async fn work_counts_if_the_lock_was_held_until_its_release() {
    let bench = Bench::new();
    let client = bench.client();
    let outcome = client.mutex("a").max_hold(SECOND).run_while_held(async |_| bench.clock.advance(SECOND)).await;
    assert!(matches!(&outcome, Err(Error::Lost(lost)) if lost.reason == LossReason::MaxHold), "{outcome:?}");
    let outcome = client
        .mutex("a")
        .run_while_held(async |guard| {
            revoke(&client, guard).await;
            "done"
        })
        .await;
    assert!(matches!(&outcome, Err(Error::Lost(lost)) if lost.reason == LossReason::NotHeld), "{outcome:?}");
    let outcome = client
        .mutex("b")
        .run_while_held(async |_| {
            bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
            "done"
        })
        .await;
    assert_eq!(outcome, Ok("done"), "the release is repeated");
}

/// An error of work under a lock.
#[derive(Debug, PartialEq)]
enum Failed {
    Lock(Error),
    Work(&'static str),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

#[tokio::test]
async fn an_error_of_the_work_is_returned_unless_the_lock_was_lost() {
    let bench = Bench::new();
    let client = bench.client();
    let mutex = client.mutex("a").max_hold(SECOND);
    let fails = async |_: &Guard| Err::<(), _>(Failed::Work("no such file"));
    assert_eq!(mutex.try_run_while_held(fails).await, Err(Failed::Work("no such file")));
    assert!(bench.is_free("a").await);
    let token = mutex.try_run_while_held(async |guard: &Guard| Ok::<_, Failed>(guard.fencing_token().get())).await;
    assert!(token.is_ok_and(|token| token > 1));
    let fails_late = async |_: &Guard| {
        bench.clock.advance(SECOND);
        Err::<(), _>(Failed::Work("too late"))
    };
    let outcome = mutex.try_run_while_held(fails_late).await;
    assert!(matches!(outcome, Err(Failed::Lock(Error::Lost(_)))), "{outcome:?}");
    bench.becomes_free("a").await;
    let outcome = client.mutex("").try_run_while_held(async |_: &Guard| Ok::<_, Failed>(())).await;
    assert!(matches!(outcome, Err(Failed::Lock(Error::Acquire(AcquireError::Invalid(_))))), "{outcome:?}");
}

#[tokio::test]
async fn closing_ends_holds_and_refuses_later_calls() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    client.close().await;
    assert_eq!(guard.lost().await.reason, LossReason::Closed);
    assert!(matches!(client.mutex("b").acquire().await, Err(AcquireError::Closed)));
    assert!(bench.is_free("a").await);
}

#[tokio::test]
async fn the_last_handle_going_flushes_the_release() {
    let bench = Bench::new();
    drop(bench.client().mutex("a").acquire().await.unwrap());
    bench.becomes_free("a").await;
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_is_asked() {
    let bench = Bench::new();
    let client = bench.client();
    for mutex in [client.mutex(""), client.mutex("a").ttl(Duration::ZERO), client.mutex("a").max_hold(Duration::ZERO)] {
        assert!(matches!(mutex.acquire().await, Err(AcquireError::Invalid(_))));
    }
    assert!(matches!(client.mutex("a").why("x".repeat(201)).acquire().await, Err(AcquireError::Invalid(_))));
    assert_eq!(bench.faults.calls(Operation::Acquire), 0);
}

/// The keeper has its own thread: user code that blocks every worker of its runtime loses nothing.
#[test]
fn a_blocked_runtime_does_not_delay_renewal() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = lock_memory::MemoryStore::default();
        let client = Client::new(Arc::new(store.nonblocking())).unwrap();
        let guard = client.mutex("a").ttl(SECOND).acquire().await.unwrap();
        let blocked: Vec<_> = (0..2).map(|_| tokio::spawn(async { std::thread::sleep(3 * SECOND) })).collect();
        std::thread::sleep(3 * SECOND);
        assert!(guard.check().is_ok());
        for task in blocked {
            task.await.unwrap();
        }
        assert!(guard.verify().await.is_ok());
    });
}

/// If a program drops its guard and ends, the lock is released, and not left to its ttl.
#[test]
fn a_guard_dropped_as_the_runtime_ends_is_released() {
    let bench = Bench::new();
    for runtime in [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()] {
        let runtime = { runtime }.enable_all().build().unwrap();
        let kept = runtime.block_on(async {
            let client = bench.client();
            drop(client.mutex("a").acquire().await.unwrap());
            drop(client.mutex("b").acquire().await.unwrap());
            client.mutex("c").acquire().await.unwrap()
        });
        drop(runtime);
        let after = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        after.block_on(async {
            assert!(bench.is_free("a").await && bench.is_free("b").await && !bench.is_free("c").await);
            assert!(kept.check().is_ok(), "a guard outlives its runtime: the keeper has its own");
            drop(kept);
            bench.becomes_free("c").await;
        });
    }
}

#[test]
fn a_claim_in_flight_as_the_runtime_ends_is_released() {
    let bench = Bench::new();
    bench.faults.hold(Operation::Acquire);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mutex = bench.client().mutex("a");
        tokio::select! {
            _ = mutex.acquire() => panic!("the reply is held back"),
            () = until(|| bench.faults.ran(Operation::Acquire) == 1) => {}
        }
    });
    drop(runtime);
    let after = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    after.block_on(async { assert!(bench.is_free("a").await) });
}

/// The store had released it the first time, so the second answer is "not held".
#[test]
fn a_release_that_is_repeated_as_the_runtime_ends_is_no_loss() {
    let (bench, (sender, told)) = (Bench::new(), channel());
    bench.faults.hold(Operation::Release);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _client = runtime.block_on(async {
        let backend = Arc::new(Faulty::new(bench.store.nonblocking(), &bench.faults));
        let builder = Client::builder(backend).clock(Arc::new(bench.clock.clone()));
        let client = builder.observer(Arc::new(Names(sender))).build().unwrap();
        drop(client.mutex("a").acquire().await.unwrap());
        until(|| bench.faults.ran(Operation::Release) == 1).await;
        client
    });
    drop(runtime);
    bench.faults.let_go(Operation::Release);
    assert_eq!(told.recv_timeout(PATIENCE), Ok("acquired"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok("released"));
}

/// The connection ends with the runtime while the release still runs.
#[test]
fn a_release_that_fails_as_the_runtime_ends_is_repeated() {
    let bench = Bench::new();
    let runs = Arc::new(AtomicU32::new(0));
    let began = Arc::clone(&runs);
    let fails_first = move |_: &ReleaseRequest| -> Hook {
        let first = began.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            // A task that is spawned on a runtime that has ended never runs.
            while first && !tokio::spawn(pending::<()>()).is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let gone =
                BackendError::new("test", Operation::Release, ErrorKind::Unreachable, Effect::Unknown, "it ended");
            if first { Err(gone) } else { Ok(()) }
        })
    };
    let backend = Arc::new(Hooked::new(bench.store.nonblocking(), fails_first));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::builder(backend).clock(Arc::new(bench.clock.clone())).build().unwrap();
        drop(client.mutex("a").acquire().await.unwrap());
        until(|| runs.load(Ordering::SeqCst) == 1).await;
    });
    drop(runtime);
    let after = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    after.block_on(async { assert!(bench.is_free("a").await, "its ttl does not run by this clock") });
}

/// The release of what is left of it is not the guard's.
#[tokio::test]
async fn a_release_of_a_hold_that_is_over_does_not_wait_for_the_store() {
    let bench = Bench::new();
    let silent = Hooked::new(bench.store.nonblocking(), |_: &ReleaseRequest| -> Hook { Box::pin(pending()) });
    let client = bench.client_of(silent);
    let guard = client.mutex("a").acquire().await.unwrap();
    bench.clock.advance(Duration::from_secs(600));
    assert!(matches!(guard.release().now_or_never(), Some(Err(HoldError::Lost(_)))));
}
