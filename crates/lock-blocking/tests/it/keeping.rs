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
#[test]
fn one_lease_is_renewed_once_in_a_period_whatever_came_before() {
    let bench = Bench::new();
    let client = bench.client();
    for pair in 0..1000 {
        client.mutex(format!("pair {}", pair % 10)).acquire().unwrap().release().unwrap();
    }
    let guard = client.mutex("held").acquire().unwrap();
    let before = bench.faults.asked().len();
    assert_eq!(before, 2001);
    for period in 1..=5 {
        bench.clock.advance(10 * SECOND);
        until(|| bench.faults.asked().len() >= before + period && guard.remaining() > 25 * SECOND);
    }
    let renewals = bench.faults.asked().split_off(before);
    let one = |call: &Asked| matches!(call, Asked::Renew(owners) if owners.len() == 1);
    assert!(renewals.len() == 5 && renewals.iter().all(one), "{renewals:?}");
}

/// Lateness counts from when a renewal was due to when it is sent.
#[test]
fn a_keeper_that_is_late_shows_it() {
    let bench = Bench::new();
    let client = bench.client();
    let _guard = client.mutex("a").acquire().unwrap();
    assert_eq!(client.keeper_lateness().max, Duration::ZERO);
    bench.clock.advance(12 * SECOND);
    until(|| bench.faults.ran(Operation::Renew) == 1);
    let late = client.keeper_lateness();
    assert!(late.last >= 2 * SECOND && late.last < 3 * SECOND, "{late:?}");
    bench.clock.advance(10 * SECOND);
    until(|| bench.faults.ran(Operation::Renew) == 2);
    let now = client.keeper_lateness();
    assert!(now.last < SECOND && now.max == late.max, "{now:?}");
}

/// A store that answers slowly delays no other renewal: a few are sent in parallel and on time.
#[test]
fn a_slow_store_does_not_make_the_keeper_late() {
    let bench = Bench::new();
    let client = bench.client();
    let _first = client.mutex("a").acquire().unwrap();
    bench.clock.advance(5 * SECOND);
    let _second = client.mutex("b").acquire().unwrap();
    bench.faults.hold(Operation::Renew);
    for renewals in 1..=2 {
        bench.clock.advance(5 * SECOND);
        until(|| bench.faults.ran(Operation::Renew) == renewals);
    }
    assert!(client.keeper_lateness().max < SECOND, "{:?}", client.keeper_lateness());
    bench.faults.let_go(Operation::Renew);
}

/// If more than a few hang, they do delay others, and the lateness shows it.
#[test]
fn a_store_that_answers_nothing_makes_the_keeper_late() {
    let bench = Bench::new();
    let client = bench.client();
    let _guards: Vec<_> = (0..5)
        .map(|n| {
            bench.clock.advance(SECOND);
            client.mutex(format!("{n}")).acquire().unwrap()
        })
        .collect();
    bench.faults.hold(Operation::Renew);
    bench.clock.advance(6 * SECOND);
    for renewals in 1..=4 {
        until(|| bench.faults.ran(Operation::Renew) >= renewals);
        bench.clock.advance(SECOND);
    }
    bench.clock.advance(4 * SECOND);
    assert!(client.keeper_lateness().max < SECOND, "{:?}", client.keeper_lateness());
    bench.faults.let_go(Operation::Renew);
    until(|| client.keeper_lateness().max >= 3 * SECOND);
}

/// When the guard is dropped, the store has the request, so the next request comes after that.
#[test]
fn a_dropped_guard_is_released_before_the_next_claim() {
    let bench = Bench::new();
    let client = bench.client();
    let mutex = client.mutex("a");
    for _ in 0..100 {
        drop(mutex.acquire().unwrap());
    }
    let calls = bench.faults.asked();
    assert_eq!(calls.len(), 200);
    assert_pairs(&calls);
}
