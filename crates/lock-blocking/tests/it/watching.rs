//! Waiting for a loss without keeping the lock.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lock_blocking::{Client, LossWatch};
use lock_core::{LossReason, Lost, Operation};

use crate::support::{Bench, until};

const SECOND: Duration = Duration::from_secs(1);

/// A thread that waits for the loss.
fn waiting(watch: &LossWatch) -> JoinHandle<Option<Lost>> {
    let watch = watch.clone();
    thread::spawn(move || watch.lost())
}

#[track_caller]
fn told(waiting: JoinHandle<Option<Lost>>) -> Option<Lost> {
    until(|| waiting.is_finished());
    waiting.join().unwrap()
}

#[test]
fn a_watch_ends_with_its_guard() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    let watch = guard.watch();
    assert!(watch.lost_within(Duration::ZERO).is_none() && !watch.has_ended());
    let threads = [waiting(&watch), waiting(&watch)];
    guard.release().unwrap();
    threads.into_iter().for_each(|thread| assert_eq!(told(thread), None));
    let guard = client.mutex("a").acquire().unwrap();
    assert_eq!(watch.lost(), None, "of another hold it knows nothing");
    let thread = waiting(&guard.watch());
    drop(guard);
    assert_eq!(told(thread), None);
    assert!(watch.has_ended());
}

/// A scope ends when all its threads have ended, so a watch that outlives the guard would block it.
#[test]
fn a_scope_with_a_watch_ends() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    let watch = guard.watch();
    thread::scope(|scope| {
        scope.spawn(|| watch.lost());
        guard.release().unwrap();
    });
    assert!(bench.is_free("a"));
}

#[test]
fn a_watch_tells_of_the_loss_then_and_later() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(5 * SECOND).acquire().unwrap();
    let watch = guard.watch();
    let thread = waiting(&watch);
    bench.clock.advance(5 * SECOND);
    assert_eq!(told(thread).unwrap().reason, LossReason::MaxHold);
    drop(guard);
    assert_eq!(watch.lost().unwrap().reason, LossReason::MaxHold);
    assert!(watch.has_ended());
}

#[test]
fn a_watch_does_not_keep_the_lock_that_a_clone_would_keep() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap().share();
    let thread = waiting(&guard.watch());
    guard.clone().release().unwrap();
    assert!(!bench.is_free("a"), "another clone holds it");
    guard.release().unwrap();
    assert!(bench.is_free("a"));
    assert_eq!(told(thread), None);
}

/// The deadline passes while the release is in flight: nobody relies on the lock any more.
#[test]
fn a_release_without_an_answer_ends_the_watch() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").ttl(3 * SECOND).acquire().unwrap();
    let watch = guard.watch();
    bench.faults.hold(Operation::Release);
    let (thread, releasing) = (waiting(&watch), thread::spawn(move || guard.release()));
    until(|| bench.faults.ran(Operation::Release) == 1);
    bench.clock.advance(3 * SECOND);
    assert_eq!(told(thread), None);
    assert_eq!(watch.lost(), None);
    bench.faults.let_go(Operation::Release);
    until(|| releasing.is_finished());
}

#[test]
fn a_watch_keeps_no_client_alive() {
    let bench = Bench::new();
    let backend = Arc::new(bench.store.blocking());
    let kept = Arc::downgrade(&backend);
    let client = Client::new(backend).unwrap();
    let guard = client.mutex("a").acquire().unwrap();
    let watch = guard.watch();
    let thread = waiting(&watch);
    drop((client, guard));
    until(|| kept.strong_count() == 0);
    assert_eq!((told(thread), watch.lost()), (None, None));
}

/// The guard that is left holds under another lease, and the watch is of its turn.
#[test]
fn a_watch_follows_a_guard_that_changes_its_mode() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    let watch = guard.watch();
    let thread = waiting(&watch);
    let writer = guard.downgrade().unwrap().try_upgrade().unwrap();
    assert!(!watch.has_ended());
    writer.release().unwrap();
    assert_eq!(told(thread), None);
    assert!(watch.has_ended());
}

#[test]
fn a_watch_tells_of_the_loss_of_a_guard_that_has_changed_its_mode() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(5 * SECOND).acquire().unwrap();
    let thread = waiting(&guard.watch());
    let reader = guard.downgrade().unwrap();
    bench.clock.advance(5 * SECOND);
    let lost = told(thread).unwrap();
    assert_eq!((lost.reason, lost.token), (LossReason::MaxHold, reader.fencing_token()));
}
