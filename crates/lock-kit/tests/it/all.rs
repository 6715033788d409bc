//! Several locks as one, in async code.

use std::time::Duration;

use lock_core::{AcquireError, ErrorKind, FencingToken, LossReason, Lost, Operation};
use lock_host::HoldError;
use lock_kit::AcquireAllError;
use lock_kit::nonblocking::{Kit, all};
use lock_memory::faults::Fault;
use tokio::time::timeout;

use crate::support::{BRIEF, Bench, PATIENCE, Store, until};

const NAMES: [&str; 3] = ["c", "a", "b"];

#[tokio::test]
async fn a_set_is_held_and_released_as_one() {
    for store in Store::with_quorum() {
        let (client, other) = (store.tokio().await, store.tokio().await);
        let guard = client.all(NAMES).acquire().await.unwrap();
        assert_eq!(guard.tokens().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), NAMES);
        let raises: Vec<_> = guard.write_tokens().map(|(name, token)| (name, FencingToken::from(token))).collect();
        assert_eq!(raises, guard.tokens().collect::<Vec<_>>());
        assert!(guard.check().is_ok() && guard.remaining() > Duration::ZERO);
        for (one, (name, token)) in guard.iter().zip(guard.tokens()) {
            assert_eq!((one.name(), one.fencing_token()), (name, token));
            assert!(other.mutex(name).try_acquire().await.unwrap().is_none());
        }
        guard.release().await.unwrap();
        other.all(NAMES).try_acquire().await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn unless_all_are_free_none_is_taken() {
    let bench = Bench::new();
    let client = bench.tokio();
    let _held = bench.tokio().mutex("b").why("maintenance").acquire().await.unwrap();
    let set = client.all(NAMES);
    assert!(set.try_acquire().await.unwrap().is_none());
    let busy = set.try_acquire_or_holder().await.unwrap_err();
    assert!(busy.to_string().contains("\"b\"") && busy.to_string().contains("maintenance"), "{busy}");
    until("the release of what was granted", || bench.free(&NAMES) == ["c", "a"]).await;
}

#[tokio::test]
async fn one_deadline_is_for_all_and_the_error_names_the_lock() {
    let bench = Bench::new();
    let (client, other) = (bench.tokio(), bench.tokio());
    let (a, _b) = (other.mutex("a").acquire().await.unwrap(), other.mutex("b").acquire().await.unwrap());
    let wait = Duration::from_secs(10);
    let waiting = tokio::spawn(async move { client.all(NAMES).wait(wait).acquire().await.map(drop) });
    until("the claim that waits for a", || bench.faults.ran(Operation::Acquire) >= 6).await;
    tokio::time::sleep(BRIEF).await;
    bench.clock.advance(Duration::from_secs(6));
    a.release().await.unwrap();
    until("the claim that waits for b", || bench.faults.ran(Operation::Acquire) >= 7).await;
    tokio::time::sleep(BRIEF).await;
    bench.clock.advance(Duration::from_secs(4));
    let error = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap_err();
    let AcquireAllError::At { name, error } = &error else { panic!("{error}") };
    assert!(matches!(error, AcquireError::TimedOut { waited, .. } if *waited >= wait), "{error}");
    assert_eq!(name.as_str(), "b");
    until("the release of what was acquired", || bench.free(&NAMES) == ["c", "a"]).await;
}

#[tokio::test]
async fn a_dropped_acquire_leaves_nothing() {
    let bench = Bench::new();
    let client = bench.tokio();
    let held = bench.tokio().mutex("b").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { client.all(NAMES).acquire().await.map(drop) });
    // All three at once, and then one by one.
    until("the claim that waits for b", || bench.faults.calls(Operation::Acquire) >= 6).await;
    assert_eq!(bench.free(&NAMES), ["c"]);
    waiting.abort();
    until("the release of what was acquired", || bench.free(&NAMES) == ["c", "a"]).await;
    held.release().await.unwrap();
    until("the end of the place in the queue", || bench.free(&NAMES) == NAMES).await;
}

#[tokio::test]
async fn an_acquire_that_is_dropped_before_the_first_answers_leaves_nothing() {
    let bench = Bench::new();
    let client = bench.tokio();
    bench.faults.hold(Operation::Acquire);
    let waiting = tokio::spawn(async move { client.all(NAMES).acquire().await.map(drop) });
    until("all claims", || bench.faults.ran(Operation::Acquire) == 3).await;
    assert!(bench.free(&NAMES).is_empty());
    waiting.abort();
    bench.faults.let_go(Operation::Acquire);
    until("the release of what was granted", || bench.free(&NAMES) == NAMES).await;
}

#[tokio::test]
async fn a_lock_that_was_lost_in_the_wait_for_another_is_acquired_again() {
    let bench = Bench::new();
    let (client, probe) =
        (bench.tokio(), lock_async::Client::new(std::sync::Arc::new(bench.store.nonblocking())).unwrap());
    let held = bench.tokio().mutex("b").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { client.all(NAMES).acquire().await.unwrap() });
    until("the claim that waits for b", || bench.faults.calls(Operation::Acquire) >= 6).await;
    let inspect = probe.inspect().unwrap();
    let name = "a".parse().unwrap();
    let holder = inspect.holder(&name, PATIENCE).await.unwrap().unwrap().holder;
    let lock_core::Holder::Leasehold { tokens, .. } = holder else { panic!("{holder}") };
    inspect.revoke(&name, tokens.low(), &lock_host::note("").unwrap(), PATIENCE).await.unwrap();
    // The keeper finds out.
    bench.clock.advance(Duration::from_secs(11));
    until("the renewals", || bench.faults.calls(Operation::Renew) >= 2).await;
    held.release().await.unwrap();
    let guard = timeout(PATIENCE, waiting).await.unwrap().unwrap();
    guard.check().unwrap();
    for one in guard.iter() {
        one.verify().await.unwrap();
    }
    assert!(guard.iter().nth(1).unwrap().fencing_token() > tokens.low());
}

#[tokio::test]
async fn the_first_loss_is_that_of_the_set_and_a_release_accounts_for_all() {
    let bench = Bench::new();
    let client = bench.tokio();
    let most = Duration::from_secs(5);
    let set = all([client.mutex("a"), client.mutex("b").max_hold(most), client.mutex("c")]);
    let guard = set.acquire().await.unwrap();
    let watch = guard.watch();
    assert!(!watch.has_ended());
    let watcher = tokio::spawn(async move { watch.lost().await });
    bench.clock.advance(most);
    let is_b = |lost: &Lost| lost.name.as_str() == "b" && lost.reason == LossReason::MaxHold;
    let lost = timeout(PATIENCE, guard.lost()).await.unwrap();
    assert!(is_b(&lost), "{lost}");
    assert!(is_b(&timeout(PATIENCE, watcher).await.unwrap().unwrap().unwrap()));
    assert!(is_b(&guard.check().unwrap_err()) && guard.remaining().is_zero());

    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Denied));
    let error = guard.release().await.unwrap_err();
    assert!(is_b(error.lost().unwrap()));
    let failed: Vec<_> = error.failures().iter().map(|(name, error)| (name.as_str(), error)).collect();
    assert!(matches!(failed[..], [("c", HoldError::Backend(_)), ("b", HoldError::Lost(_))]), "{failed:?}");
    until("the release of the others", || bench.free(&["a", "b"]).len() == 2).await;
}

#[tokio::test]
async fn a_watch_ends_with_the_guard() {
    let bench = Bench::new();
    let guard = bench.tokio().all(NAMES).acquire().await.unwrap();
    let watch = guard.watch();
    guard.release().await.unwrap();
    assert!(watch.has_ended());
    assert_eq!(timeout(PATIENCE, watch.lost()).await.unwrap(), None);
}

#[tokio::test]
async fn locks_are_released_backwards() {
    let bench = Bench::new();
    let client = bench.tokio();
    client.all(NAMES).acquire().await.unwrap().release().await.unwrap();
    assert_eq!(bench.released.names(), ["c", "b", "a"]);
    drop(client.all(NAMES).acquire().await.unwrap());
    client.close().await;
    assert_eq!(bench.released.names()[3..], ["c", "b", "a"]);
}

#[tokio::test]
async fn a_set_that_makes_no_sense_is_refused_before_a_request() {
    let bench = Bench::new();
    let (client, other) = (bench.tokio(), bench.tokio());
    let none: [&str; 0] = [];
    for (set, expected) in [
        (client.all(none), "set of locks \"\" is not valid: it is empty"),
        (client.all(["a", "b", "a"]), "lock of a set \"a\" is not valid: it is listed twice; list each lock once"),
        (all([client.mutex("a"), other.mutex("a")]), "lock of a set \"a\" is not valid: it is listed twice"),
        (client.all(["a", ""]), "lock name \"\" is not valid"),
        (client.all(["a", "b"]).ttl(Duration::ZERO), "ttl \"0s\" is not valid"),
    ] {
        for error in [set.acquire().await.unwrap_err(), set.try_acquire().await.unwrap_err()] {
            assert!(
                matches!(&error, AcquireAllError::Invalid(_)) && error.to_string().starts_with(expected),
                "{error}"
            );
        }
    }
    assert!(bench.faults.asked().is_empty());
}

#[tokio::test]
async fn a_store_that_refuses_is_an_error_at_once_and_one_that_is_away_is_waited_for() {
    let bench = Bench::new();
    let set = bench.tokio().all(NAMES);
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Denied));
    let error = set.acquire().await.unwrap_err();
    assert!(error.to_string().starts_with("the lock \"a\" of a set was not acquired: "), "{error}");
    until("the release of what was granted", || bench.free(&NAMES) == NAMES).await;
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    assert!(set.try_acquire().await.is_err());
    bench.faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    timeout(PATIENCE, set.acquire()).await.unwrap().unwrap().release().await.unwrap();
}
