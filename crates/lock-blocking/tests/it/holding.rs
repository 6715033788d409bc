use std::time::Duration;

use lock_blocking::{Client, Guard};
use lock_core::{AcquireError, ErrorKind, LossReason, Operation};
use lock_host::{Error, HoldError};
use lock_memory::faults::Fault;

use crate::support::{Bench, PATIENCE, operator, until};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_lock_is_held_and_released() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    assert!(guard.check().is_ok() && guard.remaining() > 29 * SECOND);
    assert!(guard.verify().is_ok());
    assert!(!bench.is_free("a"));
    assert_eq!(guard.release(), Ok(()));
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
fn a_loss_is_reported_at_the_deadline_with_the_last_error() {
    let bench = Bench::new();
    let guard = bench.client().mutex("a").ttl(3 * SECOND).acquire().unwrap();
    bench.faults.fail_all(Operation::Renew, Fault::Refused(ErrorKind::Unreachable));
    bench.clock.advance(SECOND);
    until(|| bench.faults.calls(Operation::Renew) > 0);
    bench.clock.advance(2 * SECOND);
    assert!(guard.check().is_err());
    let lost = guard.lost_within(PATIENCE).unwrap();
    assert!(matches!(lost.reason, LossReason::Expired(Some(_))), "{lost}");
    assert_eq!(guard.release(), Err(HoldError::Lost(lost)));
}

/// Nobody has noticed any of the losses before.
#[test]
fn a_release_tells_whether_the_lock_was_held_until_then() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").max_hold(SECOND).acquire().unwrap();
    bench.faults.hold(Operation::Release);
    bench.clock.advance(SECOND);
    let outcome = guard.release();
    assert!(matches!(&outcome, Err(HoldError::Lost(lost)) if lost.reason == LossReason::MaxHold), "{outcome:?}");
    bench.faults.let_go(Operation::Release);
    bench.becomes_free("a");
    let guard = client.mutex("a").acquire().unwrap();
    revoke(&client, &guard);
    let outcome = guard.release();
    assert!(matches!(&outcome, Err(HoldError::Lost(lost)) if lost.reason == LossReason::NotHeld), "{outcome:?}");
    let guard = client.mutex("a").acquire().unwrap();
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    let outcome = guard.release();
    assert!(matches!(&outcome, Err(HoldError::Backend(error)) if error.operation() == Operation::Release));
}

/// Ends the lease as an operator does, without the client.
fn revoke(client: &Client, guard: &Guard) {
    client.inspect().unwrap().revoke(guard.name(), guard.fencing_token(), &operator(), SECOND).unwrap();
}

#[test]
fn a_holder_that_asks_learns_who_revoked_its_lease() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    let inspect = client.inspect().unwrap();
    inspect.revoke(guard.name(), guard.fencing_token(), &operator(), SECOND).unwrap();
    assert!(guard.check().is_ok(), "checking is local");
    assert!(guard.verify().is_err());
    let lost = guard.lost_within(PATIENCE).unwrap();
    assert_eq!(lost.reason, LossReason::Revoked { by: operator() });
}

#[test]
fn a_holder_learns_who_revoked_its_lease_when_it_is_renewed() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().unwrap();
    revoke(&client, &guard);
    bench.clock.advance(11 * SECOND);
    let lost = guard.lost_within(PATIENCE).unwrap();
    assert_eq!(lost.reason, LossReason::Revoked { by: operator() });
    assert!(lost.to_string().ends_with("an operator ended its lease early: pid 1 on console (it hangs)"), "{lost}");
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
    client.inspect().unwrap().revoke(guard.name(), guard.fencing_token(), &operator(), SECOND).unwrap();
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
    assert!(matches!(outcome, Err(Error::Lost(_))));
    bench.becomes_free("a");
}

#[test]
fn work_counts_if_the_lock_was_held_until_its_release() {
    let bench = Bench::new();
    let client = bench.client();
    let outcome = client.mutex("a").max_hold(SECOND).run_while_held(|_| bench.clock.advance(SECOND));
    assert!(matches!(&outcome, Err(Error::Lost(lost)) if lost.reason == LossReason::MaxHold), "{outcome:?}");
    let outcome = client.mutex("a").run_while_held(|guard| {
        revoke(&client, guard);
        "done"
    });
    assert!(matches!(&outcome, Err(Error::Lost(lost)) if lost.reason == LossReason::NotHeld), "{outcome:?}");
    let outcome = client.mutex("b").run_while_held(|_| {
        bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
        "done"
    });
    assert_eq!(outcome, Ok("done"), "the release is repeated");
}

/// An error of work under a lock.
#[derive(Debug, PartialEq)]
enum Failed {
    Lock(Error),
    Work(&'static str),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

#[test]
fn an_error_of_the_work_is_returned_unless_the_lock_was_lost() {
    let bench = Bench::new();
    let client = bench.client();
    let mutex = client.mutex("a").max_hold(SECOND);
    let fails = |_: &Guard| Err::<(), _>(Failed::Work("no such file"));
    assert_eq!(mutex.try_run_while_held(fails), Err(Failed::Work("no such file")));
    assert!(bench.is_free("a"));
    let token = mutex.try_run_while_held(|guard: &Guard| Ok::<_, Failed>(guard.fencing_token().get()));
    assert!(token.is_ok_and(|token| token > 1));
    let fails_late = |_: &Guard| {
        bench.clock.advance(SECOND);
        Err::<(), _>(Failed::Work("too late"))
    };
    let outcome = mutex.try_run_while_held(fails_late);
    assert!(matches!(outcome, Err(Failed::Lock(Error::Lost(_)))), "{outcome:?}");
    bench.becomes_free("a");
    let outcome = client.mutex("").try_run_while_held(|_: &Guard| Ok::<_, Failed>(()));
    assert!(matches!(outcome, Err(Failed::Lock(Error::Acquire(AcquireError::Invalid(_))))), "{outcome:?}");
}

#[test]
fn closing_ends_holds_and_refuses_later_calls() {
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
        client.inspect().unwrap().revoke(guard.name(), guard.fencing_token(), &operator(), SECOND).unwrap();
        bench.clock.advance(10 * SECOND);
        assert_eq!(watching.join().unwrap().reason, LossReason::Revoked { by: operator() });
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
    // Other tests of this program start threads meanwhile.
    assert!(threads() < before + guards.len() / 2, "{} threads, {before} before", threads());
    bench.faults.let_go(Operation::Release);
    drop(guards);
    bench.becomes_free("lock 199");
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}
