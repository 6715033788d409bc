//! When the keeper renews, and in which order the store gets requests.

use std::time::Duration;

use lock_core::Operation;
use lock_memory::faults::Asked;

use crate::support::{Bench, until};

const SECOND: Duration = Duration::from_secs(1);

fn assert_pairs(calls: &[Asked]) {
    for pair in calls.chunks(2) {
        let [Asked::Acquire(asked), Asked::Release(released)] = pair else { panic!("out of order: {pair:?}") };
        assert_eq!(asked, released);
    }
}

/// Earlier holds leave no renewals behind: there is one request for each period, with one lease in it.
#[tokio::test]
async fn one_lease_is_renewed_once_in_a_period_whatever_came_before() {
    let bench = Bench::new();
    let client = bench.client();
    for pair in 0..1000 {
        client.mutex(format!("pair {}", pair % 10)).acquire().await.unwrap().release().await.unwrap();
    }
    let guard = client.mutex("held").acquire().await.unwrap();
    let before = bench.faults.asked().len();
    assert_eq!(before, 2001);
    for period in 1..=5 {
        bench.clock.advance(10 * SECOND);
        until(|| bench.faults.asked().len() >= before + period && guard.remaining() > 25 * SECOND).await;
    }
    let renewals = bench.faults.asked().split_off(before);
    let one = |call: &Asked| matches!(call, Asked::Renew(owners) if owners.len() == 1);
    assert!(renewals.len() == 5 && renewals.iter().all(one), "{renewals:?}");
}

/// Lateness counts from when a renewal was due to when it is sent.
#[tokio::test]
async fn a_keeper_that_is_late_shows_it() {
    let bench = Bench::new();
    let client = bench.client();
    let _guard = client.mutex("a").acquire().await.unwrap();
    assert_eq!(client.keeper_lateness().max, Duration::ZERO);
    bench.clock.advance(12 * SECOND);
    until(|| bench.faults.ran(Operation::Renew) == 1).await;
    let late = client.keeper_lateness();
    assert!(late.last >= 2 * SECOND && late.last < 3 * SECOND, "{late:?}");
    bench.clock.advance(10 * SECOND);
    until(|| bench.faults.ran(Operation::Renew) == 2).await;
    let now = client.keeper_lateness();
    assert!(now.last < SECOND && now.max == late.max, "{now:?}");
}

/// A store that answers slowly delays no other renewal: they are sent in parallel and on time.
#[tokio::test]
async fn a_slow_store_does_not_make_the_keeper_late() {
    let bench = Bench::new();
    let client = bench.client();
    let _first = client.mutex("a").acquire().await.unwrap();
    bench.clock.advance(5 * SECOND);
    let _second = client.mutex("b").acquire().await.unwrap();
    bench.faults.hold(Operation::Renew);
    for renewals in 1..=2 {
        bench.clock.advance(5 * SECOND);
        until(|| bench.faults.ran(Operation::Renew) == renewals).await;
    }
    assert!(client.keeper_lateness().max < SECOND, "{:?}", client.keeper_lateness());
    bench.faults.let_go(Operation::Renew);
}

/// When the guard is dropped, its release is in flight. Nobody waits for the answer, and the next request comes after it.
#[tokio::test]
async fn a_dropped_guard_is_released_before_the_next_claim() {
    let bench = Bench::new();
    let client = bench.client();
    let mutex = client.mutex("a");
    bench.faults.hold(Operation::Release);
    // As many releases as may be unanswered.
    for _ in 0..4 {
        drop(mutex.acquire().await.unwrap());
    }
    // No release was answered, and none was waited for.
    until(|| bench.faults.asked().len() >= 8).await;
    let calls = bench.faults.asked();
    assert_pairs(&calls[..8]);
    bench.faults.let_go(Operation::Release);
}
