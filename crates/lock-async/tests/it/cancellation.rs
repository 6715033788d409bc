//! Futures that are dropped at every point where they wait. Nothing is left behind.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use lock_core::Operation;

use crate::support::{Bench, PATIENCE, YIELDS, Yielding, until};

/// Polls a future this many times, with everything else running in between, then drops it. Returns whether it had ended.
pub(crate) async fn drop_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    false
}

/// Dropped before the request is sent, after the store has carried it out, and before the answer arrives.
#[tokio::test]
async fn a_request_dropped_at_any_point_is_carried_on() {
    let bench = Bench::new();
    let client = bench.client_of(Yielding::new(bench.store.nonblocking()));
    for polls in 0..=2 * YIELDS {
        // A lock where nothing else is in flight.
        let [asked, released] = [format!("asked {polls}"), format!("released {polls}")];
        assert!(!drop_after(polls, client.mutex(&asked).acquire()).await);
        bench.becomes_free(&asked).await;
        let guard = client.mutex(&released).acquire().await.unwrap();
        assert!(!drop_after(polls, guard.release()).await);
        bench.becomes_free(&released).await;
    }
    assert!(drop_after(2 * YIELDS + 1, client.mutex("a").acquire()).await, "those were all points");
}

#[tokio::test]
async fn an_acquire_dropped_with_its_reply_in_flight_leaves_no_key() {
    let bench = Bench::new();
    let client = bench.client();
    for polls in 1..4 {
        bench.faults.hold(Operation::Acquire);
        assert!(!drop_after(polls, client.mutex("a").acquire()).await, "the reply was held back");
        assert!(!bench.is_free("a").await, "the store had granted it");
        bench.faults.let_go(Operation::Acquire);
        bench.becomes_free("a").await;
    }
}

#[tokio::test]
async fn an_acquire_dropped_in_the_queue_leaves_no_place() {
    let bench = Bench::new();
    let (holder, other) = (bench.client(), bench.client());
    let guard = holder.mutex("a").acquire().await.unwrap();
    for polls in 1..4 {
        assert!(!drop_after(polls, other.mutex("a").acquire()).await);
    }
    // A waiter that still has a place would be handed the lock now, and nobody would release it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    guard.release().await.unwrap();
    assert!(bench.is_free("a").await);
}

/// Drops a future after it has asked the store and before it gets the answer.
async fn drop_midway<F: Future>(bench: &Bench, operation: Operation, polls: usize, future: F) {
    bench.faults.hold(operation);
    let asked = bench.faults.ran(operation);
    assert!(!drop_after(polls, future).await, "the reply was held back");
    until(|| bench.faults.ran(operation) > asked).await;
    bench.faults.let_go(operation);
}

#[tokio::test]
async fn releasing_verifying_and_working_can_be_dropped_at_any_point() {
    let bench = Bench::new();
    for polls in 1..4 {
        let client = bench.client();
        let guard = client.mutex("a").acquire().await.unwrap();
        drop_after(0, guard.verify()).await;
        drop_midway(&bench, Operation::Fence, polls, guard.verify()).await;
        assert!(!drop_after(polls, guard.lost()).await, "it was not lost");
        assert!(guard.check().is_ok());
        drop_midway(&bench, Operation::Release, polls, guard.release()).await;
        bench.becomes_free("a").await;
        let mutex = client.mutex("a");
        let work = mutex.run_while_held(async |_| std::future::pending::<()>().await);
        assert!(!drop_after(polls, work).await, "the work never ends");
        bench.becomes_free("a").await;
        let _held = client.mutex("a").acquire().await.unwrap();
        drop_midway(&bench, Operation::Release, polls, client.close()).await;
        bench.becomes_free("a").await;
    }
}

#[tokio::test]
async fn a_cancelled_waiter_does_not_hold_up_the_next() {
    let bench = Bench::new();
    let (holder, other) = (bench.client(), bench.client());
    let guard = holder.mutex("a").acquire().await.unwrap();
    drop_after(2, other.mutex("a").acquire()).await;
    let next = tokio::spawn(async move { other.mutex("a").acquire().await.map(|guard| guard.fencing_token()) });
    tokio::time::sleep(Duration::from_millis(20)).await;
    guard.release().await.unwrap();
    assert!(tokio::time::timeout(PATIENCE, next).await.unwrap().unwrap().is_ok());
}
