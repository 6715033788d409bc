//! A hold that several threads share.

use std::time::Duration;

use lock_core::LossReason;
use lock_host::HoldError;

use crate::support::{Bench, PATIENCE};

#[test]
fn the_last_clone_releases_the_lock() {
    let bench = Bench::new();
    let mutex = bench.client().mutex("a");
    let [one, two, three] = {
        let guard = mutex.acquire().unwrap().share();
        [guard.clone(), guard.clone(), guard]
    };
    assert_eq!(one.fencing_token(), two.fencing_token());
    one.release().unwrap();
    drop(two);
    assert!(three.verify().is_ok() && !bench.is_free("a"));
    three.release().unwrap();
    assert!(bench.is_free("a"));
    drop(mutex.acquire().unwrap().share());
    bench.becomes_free("a");
}

#[test]
fn every_clone_learns_of_a_loss() {
    let bench = Bench::new();
    let most = Duration::from_secs(5);
    let one = bench.client().mutex("a").max_hold(most).acquire().unwrap().share();
    let two = one.clone();
    let told =
        [one.clone(), two.clone()].map(|guard| std::thread::spawn(move || guard.lost_within(PATIENCE).unwrap().reason));
    bench.clock.advance(most);
    for thread in told {
        assert_eq!(thread.join().unwrap(), LossReason::MaxHold);
    }
    for guard in [one, two] {
        let outcome = guard.release();
        assert!(matches!(&outcome, Err(HoldError::Lost(lost)) if lost.reason == LossReason::MaxHold), "{outcome:?}");
    }
}

#[test]
fn a_lock_is_acquired_again_only_while_it_is_held() {
    let bench = Bench::new();
    let most = Duration::from_secs(5);
    let (lock, other) = (bench.client().mutex("a").max_hold(most), bench.client().mutex("a"));
    let guard = lock.acquire().unwrap().share();
    assert!(lock.is_held_by(&guard) && lock.clone().is_held_by(&guard) && !other.is_held_by(&guard));
    let again = guard.again().unwrap();
    assert_eq!(again.fencing_token(), guard.fencing_token());
    guard.release().unwrap();
    assert!(!bench.is_free("a"));
    bench.clock.advance(most);
    assert_eq!(again.again().unwrap_err().reason, LossReason::MaxHold);
}
