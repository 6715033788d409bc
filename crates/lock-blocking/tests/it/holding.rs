use std::time::Duration;

use lock_core::{AcquireError, Ended, ErrorKind, LossReason, Operation, WhileHeldError};
use lock_memory::faults::Fault;

use crate::support::{Bench, PATIENCE, until};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_lock_is_held_and_released() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    assert!(guard.check().is_ok() && guard.remaining() > 29 * SECOND);
    assert!(guard.verify().is_ok());
    assert!(!bench.is_free("a"));
    assert!(matches!(guard.release(), Ok(Ended::Released)));
    assert!(bench.is_free("a"));
}

#[test]
fn tokens_rise_and_dropping_releases_in_order() {
    let bench = Bench::new();
    let mutex = bench.client().mutex("a");
    let mut last = 0;
    for _ in 0..100 {
        let guard = mutex.try_acquire().unwrap().expect("the release before came first");
        assert!(guard.fencing_token().get() > last);
        last = guard.fencing_token().get();
    }
}

#[test]
fn renewal_outlives_the_ttl() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").ttl(3 * SECOND).acquire().unwrap();
    for renewals in 1..=10 {
        bench.clock.advance(SECOND);
        until(|| bench.faults.ran(Operation::Renew) >= renewals && guard.remaining() > 2 * SECOND);
    }
    assert!(guard.check().is_ok());
    assert_eq!(bench.faults.calls(Operation::Renew), 10);
}

#[test]
fn loss_is_told_at_the_deadline_with_the_last_error() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").ttl(3 * SECOND).acquire().unwrap();
    bench.faults.fail_all(Operation::Renew, Fault::Refused(ErrorKind::Unreachable));
    bench.clock.advance(SECOND);
    until(|| bench.faults.calls(Operation::Renew) > 0);
    bench.clock.advance(2 * SECOND);
    assert!(guard.check().is_err());
    let lost = guard.lost_within(PATIENCE).unwrap();
    assert!(matches!(lost.reason, LossReason::Expired(Some(_))), "{lost}");
    assert!(matches!(guard.release(), Ok(Ended::AlreadyLost(LossReason::Expired(_)))));
}

#[test]
fn a_revoked_lease_is_lost() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    let inspect = client.inspect().unwrap();
    inspect.revoke(guard.name(), guard.fencing_token(), SECOND).unwrap();
    assert!(guard.check().is_ok(), "checking is local");
    assert!(guard.verify().is_err());
    let lost = guard.lost_within(PATIENCE).unwrap();
    assert_eq!(lost.reason, LossReason::NotHeld);
}

#[test]
fn a_lease_is_renewed_when_asked_for() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    bench.clock.advance(5 * SECOND);
    assert!(guard.remaining() < 25 * SECOND, "no regular renewal is due yet");
    guard.renew().unwrap();
    assert!(guard.remaining() > 29 * SECOND);
    client.inspect().unwrap().revoke(guard.name(), guard.fencing_token(), SECOND).unwrap();
    assert!(guard.renew().is_err() && guard.check().is_err());
}

#[test]
fn max_hold_ends_a_hold_that_is_renewed() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").max_hold(5 * SECOND).acquire().unwrap();
    bench.clock.advance(5 * SECOND);
    let lost = guard.lost_within(PATIENCE).unwrap();
    assert_eq!(lost.reason, LossReason::MaxHold);
    bench.becomes_free("a");
}

#[test]
fn work_that_outlasts_the_lock_does_not_count() {
    let bench = Bench::new();
    let client = bench.client();
    assert_eq!(client.mutex("a").run_while_held(|guard| guard.fencing_token().get()).unwrap(), 1);
    let mutex = client.mutex("a").max_hold(SECOND);
    let outcome = mutex.run_while_held(|guard| {
        bench.clock.advance(SECOND);
        guard.lost_within(PATIENCE)
    });
    assert!(matches!(outcome, Err(WhileHeldError::Lost(_))));
    bench.becomes_free("a");
}

#[test]
fn closing_ends_holds_and_refuses_what_comes() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    client.close();
    assert_eq!(guard.lost().reason, LossReason::Closed);
    assert!(matches!(client.mutex("b").acquire(), Err(AcquireError::Closed)));
    assert!(bench.is_free("a"));
}

#[test]
fn the_last_handle_going_flushes_the_release() {
    let bench = Bench::new();
    drop(bench.client().mutex("a").acquire().unwrap());
    bench.becomes_free("a");
}

#[test]
fn bad_input_is_refused_before_anything_is_asked() {
    let bench = Bench::new();
    let client = bench.client();
    for mutex in [client.mutex(""), client.mutex("a").ttl(Duration::ZERO), client.mutex("a").max_hold(Duration::ZERO)] {
        assert!(matches!(mutex.acquire(), Err(AcquireError::Invalid(_))));
    }
    assert!(matches!(client.mutex("a").why("x".repeat(201)).acquire(), Err(AcquireError::Invalid(_))));
    assert_eq!(bench.faults.calls(Operation::Acquire), 0);
}

#[test]
fn a_loss_reaches_another_thread() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| guard.lost());
        client.inspect().unwrap().revoke(guard.name(), guard.fencing_token(), SECOND).unwrap();
        bench.clock.advance(10 * SECOND);
        assert_eq!(watching.join().unwrap().reason, LossReason::NotHeld);
    });
}

/// A store that hangs while many leases end does not cost a thread for each.
#[test]
fn many_losses_at_once_start_few_threads() {
    let bench = Bench::new();
    let client = bench.client();
    let guards: Vec<_> = (0..200).map(|n| client.mutex(format!("lock {n}")).acquire().unwrap()).collect();
    bench.faults.fail_all(Operation::Renew, Fault::Refused(ErrorKind::Unreachable));
    bench.faults.hold(Operation::Release);
    let before = threads();
    bench.clock.advance(60 * SECOND);
    for guard in &guards {
        guard.lost_within(PATIENCE).unwrap();
    }
    assert!(threads() < before + 20, "{} threads, {before} before", threads());
    bench.faults.let_go(Operation::Release);
    drop(guards);
    bench.becomes_free("lock 199");
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}
