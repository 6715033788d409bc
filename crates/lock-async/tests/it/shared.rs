//! A hold that several tasks share.

use std::time::Duration;

use lock_core::LossReason;
use lock_host::HoldError;

use crate::support::{Bench, PATIENCE};

#[tokio::test]
async fn the_last_clone_releases_the_lock() {
    let bench = Bench::new();
    let mutex = bench.client().mutex("a");
    let [one, two, three] = {
        let guard = mutex.acquire().await.unwrap().share();
        [guard.clone(), guard.clone(), guard]
    };
    assert_eq!(one.fencing_token(), two.fencing_token());
    one.release().await.unwrap();
    drop(two);
    assert!(three.verify().await.is_ok() && !bench.is_free("a").await);
    three.release().await.unwrap();
    assert!(bench.is_free("a").await);
    drop(mutex.acquire().await.unwrap().share());
    bench.becomes_free("a").await;
}

#[tokio::test]
async fn every_clone_learns_of_a_loss() {
    let bench = Bench::new();
    let most = Duration::from_secs(5);
    let one = bench.client().mutex("a").max_hold(most).acquire().await.unwrap().share();
    let two = one.clone();
    let told = [one.clone(), two.clone()].map(|guard| tokio::spawn(async move { guard.lost().await.reason }));
    bench.clock.advance(most);
    for task in told {
        assert_eq!(tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap(), LossReason::MaxHold);
    }
    for guard in [one, two] {
        let outcome = guard.release().await;
        assert!(matches!(&outcome, Err(HoldError::Lost(lost)) if lost.reason == LossReason::MaxHold), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_lock_is_acquired_again_only_while_it_is_held() {
    let bench = Bench::new();
    let most = Duration::from_secs(5);
    let (lock, other) = (bench.client().mutex("a").max_hold(most), bench.client().mutex("a"));
    let guard = lock.acquire().await.unwrap().share();
    assert!(lock.is_held_by(&guard) && lock.clone().is_held_by(&guard) && !other.is_held_by(&guard));
    let again = guard.again().unwrap();
    assert_eq!(again.fencing_token(), guard.fencing_token());
    guard.release().await.unwrap();
    assert!(!bench.is_free("a").await);
    bench.clock.advance(most);
    assert_eq!(again.again().unwrap_err().reason, LossReason::MaxHold);
}
