//! A lock that its thread acquires again.

use std::thread;
use std::time::Duration;

use lock_blocking::CancelToken;
use lock_core::{AcquireError, LossReason, Operation};
use lock_host::{Error, HoldError};
use lock_kit::blocking::Kit;
use test_support::bounds::within;

use crate::support::{Bench, Store};

#[test]
fn an_inner_acquire_is_local_and_the_last_guard_releases() {
    let bench = Bench::new();
    let client = bench.plain();
    let outer = client.reentrant("a").acquire().unwrap();
    // Other handles and clones of the client, and options that no longer matter.
    let middle =
        client.clone().reentrant("a").ttl(Duration::from_secs(1)).cancelled_by(&CancelToken::new()).acquire().unwrap();
    let inner = client.reentrant("a").try_acquire().unwrap().unwrap();
    assert_eq!(bench.faults.calls(Operation::Acquire), 1);
    assert!([&middle, &inner].iter().all(|guard| guard.fencing_token() == outer.fencing_token()));
    outer.release().unwrap();
    drop(inner);
    assert_eq!((bench.free(&["a"]).len(), bench.faults.calls(Operation::Release)), (0, 0));
    let again = client.reentrant("a").acquire().unwrap();
    middle.release().unwrap();
    again.release().unwrap();
    assert_eq!(bench.free(&["a"]), ["a"]);
    assert!(client.reentrant("a").acquire().is_ok(), "a new hold");
    assert_eq!(bench.faults.calls(Operation::Acquire), 2);
}

#[test]
fn the_holder_is_one_thread_of_one_client() {
    for store in Store::with_quorum() {
        let (client, other) = (store.plain(), store.plain());
        let guard = client.reentrant("a").acquire().unwrap();
        assert!(client.reentrant("b").try_acquire().unwrap().is_some(), "another lock");
        assert!(other.reentrant("a").try_acquire().unwrap().is_none(), "another client");
        assert!(client.mutex("a").try_acquire().unwrap().is_none(), "a mutex");
        let elsewhere = client.reentrant("a");
        let taken = move || elsewhere.try_acquire().unwrap().is_some();
        assert!(!within("another thread", || thread::spawn(taken).join().unwrap()));
        guard.release().unwrap();
        assert!(other.reentrant("a").try_acquire().unwrap().is_some());
    }
}

#[test]
fn after_a_loss_acquires_fail_until_all_guards_are_gone() {
    let bench = Bench::new();
    let most = Duration::from_secs(5);
    let lock = bench.plain().reentrant("a").max_hold(most);
    let (outer, inner) = (lock.acquire().unwrap(), lock.acquire().unwrap());
    bench.clock.advance(most);
    let fails = || {
        let lost = |error: Error| matches!(error, Error::Lost(lost) if lost.reason == LossReason::MaxHold);
        lost(lock.acquire().unwrap_err()) && lost(lock.try_acquire().unwrap_err())
    };
    assert!(fails());
    drop(outer);
    assert!(fails());
    assert!(matches!(inner.release(), Err(HoldError::Lost(_))));
    let guard = lock.acquire().unwrap();
    guard.check().unwrap();
    guard.release().unwrap();
}

#[test]
fn an_invalid_lock_and_a_cancelled_wait_are_errors() {
    let bench = Bench::new();
    let client = bench.plain();
    let invalid = |error| matches!(error, Error::Acquire(AcquireError::Invalid(_)));
    assert!(invalid(client.reentrant("").acquire().unwrap_err()));
    let _guard = client.reentrant("a").acquire().unwrap();
    assert!(invalid(client.reentrant("a").ttl(Duration::ZERO).acquire().unwrap_err()));
    let cancel = CancelToken::new();
    cancel.cancel();
    let error = client.reentrant("b").cancelled_by(&cancel).acquire().unwrap_err();
    assert!(matches!(error, Error::Acquire(AcquireError::Cancelled)));
}

#[test]
fn a_guard_that_outlives_its_thread_local_state_still_releases() {
    let bench = Bench::new();
    let lock = bench.plain().reentrant("a");
    let thread = thread::spawn(move || {
        thread_local! {
            static KEPT: std::cell::RefCell<Vec<lock_kit::blocking::ReentrantGuard>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        KEPT.with(|kept| kept.borrow_mut().push(lock.acquire().unwrap()));
    });
    within("the end of the thread", || thread.join().unwrap());
    assert_eq!(bench.free(&["a"]), ["a"]);
}
