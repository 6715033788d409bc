//! Several locks as one, in threads.

use std::thread;
use std::time::Duration;

use lock_blocking::CancelToken;
use lock_core::{AcquireError, ErrorKind, FencingToken, LossReason, Lost, Operation};
use lock_host::HoldError;
use lock_kit::AcquireAllError;
use lock_kit::blocking::{Kit, all};
use lock_memory::faults::Fault;
use test_support::bounds::{wait_for, within};

use crate::support::{BRIEF, Bench, PATIENCE, Store};

const NAMES: [&str; 3] = ["c", "a", "b"];

fn until(what: &str, done: impl Fn() -> bool) {
    wait_for(what, || done().then_some(()));
}

#[test]
fn a_set_is_held_and_released_as_one() {
    for store in Store::with_quorum() {
        let (client, other) = (store.plain(), store.plain());
        let guard = client.all(NAMES).acquire().unwrap();
        assert_eq!(guard.tokens().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), NAMES);
        let raises: Vec<_> = guard.write_tokens().map(|(name, token)| (name, FencingToken::from(token))).collect();
        assert_eq!(raises, guard.tokens().collect::<Vec<_>>());
        assert!(guard.check().is_ok() && guard.remaining() > Duration::ZERO);
        for (one, (name, token)) in guard.iter().zip(guard.tokens()) {
            assert_eq!((one.name(), one.fencing_token()), (name, token));
            assert!(other.mutex(name).try_acquire().unwrap().is_none());
        }
        guard.release().unwrap();
        other.all(NAMES).try_acquire().unwrap().unwrap().release().unwrap();
    }
}

#[test]
fn unless_all_are_free_none_is_taken() {
    let bench = Bench::new();
    let client = bench.plain();
    let _held = bench.plain().mutex("b").why("maintenance").acquire().unwrap();
    let set = client.all(NAMES);
    assert!(set.try_acquire().unwrap().is_none());
    let busy = set.try_acquire_or_holder().unwrap_err();
    assert!(busy.to_string().contains("\"b\"") && busy.to_string().contains("maintenance"), "{busy}");
    assert_eq!(bench.free(&NAMES), ["c", "a"]);
}

#[test]
fn one_deadline_is_for_all_and_the_error_names_the_lock() {
    let bench = Bench::new();
    let (client, other) = (bench.plain(), bench.plain());
    let (a, _b) = (other.mutex("a").acquire().unwrap(), other.mutex("b").acquire().unwrap());
    let wait = Duration::from_secs(10);
    let waiting = thread::spawn(move || client.all(NAMES).wait(wait).acquire().map(drop));
    until("the claim that waits for a", || bench.faults.ran(Operation::Acquire) >= 6);
    thread::sleep(BRIEF);
    bench.clock.advance(Duration::from_secs(6));
    a.release().unwrap();
    until("the claim that waits for b", || bench.faults.ran(Operation::Acquire) >= 7);
    thread::sleep(BRIEF);
    bench.clock.advance(Duration::from_secs(4));
    let error = within("the end of the wait", || waiting.join().unwrap().unwrap_err());
    let AcquireAllError::At { name, error } = &error else { panic!("{error}") };
    assert!(matches!(error, AcquireError::TimedOut { waited, .. } if *waited >= wait), "{error}");
    assert_eq!((name.as_str(), bench.free(&NAMES)), ("b", vec!["c", "a"]));
}

#[test]
fn a_cancelled_acquire_leaves_nothing() {
    let bench = Bench::new();
    let client = bench.plain();
    let held = bench.plain().mutex("b").acquire().unwrap();
    let cancel = CancelToken::new();
    let set = client.all(NAMES).cancelled_by(&cancel);
    let waiting = thread::spawn(move || set.acquire().map(drop));
    until("the claim that waits for b", || bench.faults.calls(Operation::Acquire) >= 6);
    assert_eq!(bench.free(&NAMES), ["c"]);
    cancel.cancel();
    let error = within("the end of the wait", || waiting.join().unwrap().unwrap_err());
    assert!(matches!(error, AcquireAllError::At { error: AcquireError::Cancelled, .. }), "{error}");
    held.release().unwrap();
    assert_eq!(bench.free(&NAMES), NAMES);

    let asked = bench.faults.asked().len();
    client.all(NAMES).cancelled_by(&cancel).acquire().map(drop).unwrap_err();
    assert_eq!(bench.faults.asked().len(), asked, "no request was sent");
    client.all(NAMES).cancelled_by(&CancelToken::new()).acquire().unwrap().release().unwrap();
}

#[test]
fn the_first_loss_is_that_of_the_set_and_a_release_accounts_for_all() {
    let bench = Bench::new();
    let client = bench.plain();
    let most = Duration::from_secs(5);
    let set = all([client.mutex("a"), client.mutex("b").max_hold(most), client.mutex("c")]);
    let guard = set.acquire().unwrap();
    let watch = guard.watch();
    assert!(!watch.has_ended() && guard.lost_within(Duration::from_millis(30)).is_none());
    let watcher = thread::spawn(move || watch.lost());
    bench.clock.advance(most);
    let is_b = |lost: &Lost| lost.name.as_str() == "b" && lost.reason == LossReason::MaxHold;
    assert!(is_b(&guard.lost_within(PATIENCE).unwrap()));
    assert!(is_b(&within("the watcher", || watcher.join().unwrap().unwrap())));
    assert!(is_b(&guard.check().unwrap_err()) && guard.remaining().is_zero());

    until("the background release of b", || bench.free(&["b"]).len() == 1);
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Denied));
    let error = guard.release().unwrap_err();
    assert!(is_b(error.lost().unwrap()));
    let failed: Vec<_> = error.failures().iter().map(|(name, error)| (name.as_str(), error)).collect();
    assert!(matches!(failed[..], [("c", HoldError::Backend(_)), ("b", HoldError::Lost(_))]), "{failed:?}");
    until("the release of the others", || bench.free(&["a", "b"]).len() == 2);
}

#[test]
fn a_watch_ends_with_the_guard() {
    let bench = Bench::new();
    let guard = bench.plain().all(NAMES).acquire().unwrap();
    let watch = guard.watch();
    guard.release().unwrap();
    assert!(watch.has_ended());
    assert_eq!(watch.lost_within(PATIENCE), None);
}

#[test]
fn locks_are_released_backwards() {
    let bench = Bench::new();
    let client = bench.plain();
    client.all(NAMES).acquire().unwrap().release().unwrap();
    assert_eq!(bench.released.names(), ["c", "b", "a"]);
    drop(client.all(NAMES).acquire().unwrap());
    assert_eq!(bench.released.names()[3..], ["c", "b", "a"]);
}

#[test]
fn a_set_that_makes_no_sense_is_refused_before_a_request() {
    let bench = Bench::new();
    let (client, other) = (bench.plain(), bench.plain());
    let none: [&str; 0] = [];
    for (set, expected) in [
        (client.all(none), "set of locks \"\" is not valid: it is empty"),
        (client.all(["a", "b", "a"]), "lock of a set \"a\" is not valid: it is listed twice; list each lock once"),
        (all([client.mutex("a"), other.mutex("a")]), "lock of a set \"a\" is not valid: it is listed twice"),
        (client.all(["a", ""]), "lock name \"\" is not valid"),
        (client.all(["a", "b"]).ttl(Duration::ZERO), "ttl \"0s\" is not valid"),
    ] {
        for error in [set.acquire().unwrap_err(), set.try_acquire().unwrap_err()] {
            assert!(
                matches!(&error, AcquireAllError::Invalid(_)) && error.to_string().starts_with(expected),
                "{error}"
            );
        }
    }
    assert!(bench.faults.asked().is_empty());
}
