//! Waiting for a loss without keeping the lock.

use std::sync::Arc;
use std::time::Duration;

use lock_async::{Client, LossWatch};
use lock_core::{LossReason, Lost, Operation};
use tokio::task::JoinHandle;

use crate::support::{Bench, PATIENCE, until};

const SECOND: Duration = Duration::from_secs(1);

/// A task that waits for the loss.
fn waiting(watch: &LossWatch) -> JoinHandle<Option<Lost>> {
    let watch = watch.clone();
    tokio::spawn(async move { watch.lost().await })
}

async fn told(waiting: JoinHandle<Option<Lost>>) -> Option<Lost> {
    tokio::time::timeout(PATIENCE, waiting).await.expect("the watch ends").unwrap()
}

#[tokio::test]
async fn a_watch_ends_with_its_guard() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    let watch = guard.watch();
    assert!(!watch.has_ended());
    let tasks = [waiting(&watch), waiting(&watch)];
    tokio::task::yield_now().await;
    guard.release().await.unwrap();
    for task in tasks {
        assert_eq!(told(task).await, None);
    }
    let guard = client.mutex("a").acquire().await.unwrap();
    assert_eq!(watch.lost().await, None, "of another hold it knows nothing");
    let task = waiting(&guard.watch());
    drop(guard);
    assert_eq!(told(task).await, None);
    assert!(watch.has_ended());
}

#[tokio::test]
async fn a_watch_tells_of_the_loss_then_and_later() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(5 * SECOND).acquire().await.unwrap();
    let watch = guard.watch();
    let task = waiting(&watch);
    bench.clock.advance(5 * SECOND);
    assert_eq!(told(task).await.unwrap().reason, LossReason::MaxHold);
    drop(guard);
    assert_eq!(watch.lost().await.unwrap().reason, LossReason::MaxHold);
    assert!(watch.has_ended());
}

#[tokio::test]
async fn a_watch_does_not_keep_the_lock_that_a_clone_would_keep() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap().share();
    let task = waiting(&guard.watch());
    guard.clone().release().await.unwrap();
    assert!(!bench.is_free("a").await, "another clone holds it");
    guard.release().await.unwrap();
    assert!(bench.is_free("a").await);
    assert_eq!(told(task).await, None);
}

/// The deadline passes while the release is in flight: nobody relies on the lock any more.
#[tokio::test]
async fn a_release_without_an_answer_ends_the_watch() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").ttl(3 * SECOND).acquire().await.unwrap();
    let watch = guard.watch();
    bench.faults.hold(Operation::Release);
    let (task, releasing) = (waiting(&watch), tokio::spawn(guard.release()));
    until(|| bench.faults.ran(Operation::Release) == 1).await;
    bench.clock.advance(3 * SECOND);
    assert_eq!(told(task).await, None);
    assert_eq!(watch.lost().await, None);
    bench.faults.let_go(Operation::Release);
    until(|| releasing.is_finished()).await;
}

#[tokio::test]
async fn a_watch_keeps_no_client_alive() {
    let bench = Bench::new();
    let backend = Arc::new(bench.store.nonblocking());
    let kept = Arc::downgrade(&backend);
    let client = Client::new(backend).unwrap();
    let guard = client.mutex("a").acquire().await.unwrap();
    let watch = guard.watch();
    let task = waiting(&watch);
    tokio::task::yield_now().await;
    drop((client, guard));
    until(|| kept.strong_count() == 0).await;
    assert_eq!((told(task).await, watch.lost().await), (None, None));
}

/// The guard that is left holds under another lease, and the watch is of its turn.
#[tokio::test]
async fn a_watch_follows_a_guard_that_changes_its_mode() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    let watch = guard.watch();
    let task = waiting(&watch);
    let reader = guard.downgrade().await.unwrap();
    let writer = reader.try_upgrade().await.unwrap();
    assert!(!watch.has_ended());
    writer.release().await.unwrap();
    assert_eq!(told(task).await, None);
    assert!(watch.has_ended());
}

#[tokio::test]
async fn a_watch_tells_of_the_loss_of_a_guard_that_has_changed_its_mode() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(5 * SECOND).acquire().await.unwrap();
    let task = waiting(&guard.watch());
    let reader = guard.downgrade().await.unwrap();
    bench.clock.advance(5 * SECOND);
    let lost = told(task).await.unwrap();
    assert_eq!((lost.reason, lost.token), (LossReason::MaxHold, reader.fencing_token()));
}
