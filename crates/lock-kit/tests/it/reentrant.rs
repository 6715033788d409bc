//! A lock that its holder acquires again, in async code.

use std::time::Duration;

use lock_core::{AcquireError, LossReason, Operation};
use lock_host::ReleaseError;
use lock_kit::ReentrantError;
use lock_kit::nonblocking::Kit;

use crate::support::{Bench, Store, until};

#[tokio::test]
async fn an_inner_acquire_is_local_and_the_last_guard_releases() {
    let bench = Bench::new();
    let (client, lock) = (bench.tokio(), bench.tokio().reentrant("a"));
    let outer = lock.acquire_under(None).await.unwrap();
    let middle = lock.acquire_under(Some(&outer)).await.unwrap();
    let inner = lock.clone().ttl(Duration::from_secs(1)).acquire_under(Some(&middle)).await.unwrap();
    assert_eq!(bench.faults.calls(Operation::Acquire), 1);
    assert!([&middle, &inner].iter().all(|guard| guard.fencing_token() == outer.fencing_token()));
    outer.release().await.unwrap();
    drop(inner);
    assert!(client.mutex("a").try_acquire().await.unwrap().is_none());
    assert!(lock.try_acquire().await.unwrap().is_none(), "only the guard says who holds");
    assert_eq!(bench.faults.calls(Operation::Release), 0);
    middle.release().await.unwrap();
    assert_eq!(bench.free(&["a"]), ["a"]);
}

#[tokio::test]
async fn it_works_on_every_store() {
    for store in Store::with_quorum() {
        let (client, other) = (store.tokio().await, store.tokio().await);
        let outer = client.reentrant("a").acquire().await.unwrap();
        let inner = client.reentrant("a").acquire_under(Some(&outer)).await.unwrap();
        drop(outer);
        assert!(other.reentrant("a").try_acquire().await.unwrap().is_none());
        inner.release().await.unwrap();
        other.reentrant("a").try_acquire().await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn an_acquire_under_a_lost_hold_fails() {
    let bench = Bench::new();
    let most = Duration::from_secs(5);
    let lock = bench.tokio().reentrant("a").max_hold(most);
    let outer = lock.acquire().await.unwrap();
    bench.clock.advance(most);
    let error = lock.acquire_under(Some(&outer)).await.unwrap_err();
    assert!(matches!(&error, ReentrantError::Lost(lost) if lost.reason == LossReason::MaxHold), "{error}");
    assert!(matches!(outer.release().await, Err(ReleaseError::Lost(_))));
    until("the release of the lost lease", || bench.free(&["a"]) == ["a"]).await;
    lock.acquire_under(None).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_guard_of_something_else_is_refused() {
    let bench = Bench::new();
    let (client, other) = (bench.tokio(), bench.tokio());
    let outer = client.reentrant("a").acquire().await.unwrap();
    let refusal = async |lock: lock_kit::nonblocking::Reentrant| match lock.acquire_under(Some(&outer)).await {
        Err(ReentrantError::Acquire(AcquireError::Invalid(invalid))) => invalid.to_string(),
        outcome => panic!("{outcome:?}"),
    };
    let text = refusal(client.reentrant("b")).await;
    assert!(text.starts_with("outer guard of the lock \"a\" is not valid: it is not for the lock \"b\""), "{text}");
    let text = refusal(other.reentrant("a")).await;
    assert!(text.contains("it was acquired through another client"), "{text}");
    assert!(client.clone().reentrant("a").acquire_under(Some(&outer)).await.is_ok());
    assert_eq!(bench.faults.calls(Operation::Acquire), 1);
}
