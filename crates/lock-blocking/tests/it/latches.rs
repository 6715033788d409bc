//! Waiting for a latch, and arriving while the store fails.

use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use lock_blocking::Client;
use lock_core::latch::{LatchError, REPEAT_FOR};
use lock_core::{Effect, ErrorKind, Operation};
use lock_memory::faults::Fault;

use crate::support::{Bench, until};

type Waiting = JoinHandle<Result<(), LatchError>>;

/// Begins to wait for the latch "a", and has looked at it.
fn waiting(bench: &Bench, client: &Client) -> Waiting {
    let (latch, before) = (client.latch("a"), bench.faults.ran(Operation::Latch));
    let waiting = spawn(move || latch.wait());
    until(|| bench.faults.ran(Operation::Latch) > before);
    waiting
}

fn outcome(waiting: Waiting) -> Result<(), LatchError> {
    until(|| waiting.is_finished());
    waiting.join().unwrap()
}

#[test]
fn a_waiter_is_woken_by_the_last_arrival_without_asking_meanwhile() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    two.latch("a").expect(1).unwrap();
    let (waiting, asked) = (waiting(&bench, &one), bench.faults.calls(Operation::Latch));
    // The clock stands still, so nothing but the event can wake it.
    let latch = two.latch("a");
    assert!(latch.arrive().unwrap().is_complete());
    outcome(waiting).unwrap();
    assert_eq!(bench.faults.calls(Operation::Latch), asked + 2, "one arrival, one look");
}

#[test]
fn closing_the_client_ends_a_wait() {
    let bench = Bench::new();
    let client = bench.client();
    let waiting = waiting(&bench, &client);
    client.close();
    assert_eq!(outcome(waiting), Err(LatchError::Closed));
    assert_eq!(client.latch("a").arrive(), Err(LatchError::Closed));
}

#[test]
fn an_arrival_outlasts_an_outage_and_counts_once() {
    let bench = Bench::new();
    let client = bench.client();
    bench.faults.fail_next(Operation::Latch, Fault::LostReply);
    bench.faults.fail_next(Operation::Latch, Fault::Refused(ErrorKind::Unreachable));
    let latch = client.latch("a");
    let arriving = spawn(move || latch.arrive());
    until(|| {
        bench.clock.advance(Duration::from_millis(100));
        arriving.is_finished()
    });
    assert_eq!(arriving.join().unwrap().unwrap().arrived, 1);
    assert_eq!(bench.faults.calls(Operation::Latch), 3);
}

#[test]
fn an_arrival_that_was_never_answered_says_that_it_may_count() {
    let bench = Bench::new();
    let client = bench.client();
    bench.faults.fail_next(Operation::Latch, Fault::LostReply);
    bench.faults.fail_all(Operation::Latch, Fault::Refused(ErrorKind::Unreachable));
    let (latch, begin) = (client.latch("a"), bench.faults.calls(Operation::Latch));
    let arriving = spawn(move || latch.arrive());
    until(|| bench.faults.calls(Operation::Latch) > begin);
    bench.clock.advance(REPEAT_FOR);
    until(|| {
        bench.clock.advance(Duration::from_millis(100));
        arriving.is_finished()
    });
    match arriving.join().unwrap() {
        Err(LatchError::Backend(error)) => assert_eq!(error.effect(), Effect::Unknown, "{error}"),
        other => panic!("{other:?}"),
    }
    bench.faults.heal(Operation::Latch);
    assert_eq!(client.latch("a").state().unwrap().map(|state| state.arrived), Some(1), "it did count");
}

#[test]
fn what_is_invalid_sends_nothing() {
    let bench = Bench::new();
    let client = bench.client();
    for latch in [client.latch(""), client.latch("a").ttl(Duration::ZERO).ttl(Duration::from_secs(1))] {
        assert!(matches!(latch.arrive(), Err(LatchError::Invalid(_))), "{latch:?}");
        assert!(matches!(latch.wait(), Err(LatchError::Invalid(_))), "{latch:?}");
    }
    let latch = client.latch("a");
    assert!(matches!(latch.expect(0), Err(LatchError::Invalid(_))));
    assert!(matches!(latch.arrive_as(""), Err(LatchError::Invalid(_))));
    assert_eq!(bench.faults.calls(Operation::Latch), 0);
    assert_eq!(latch.remaining(), Ok(None));
    latch.reset().unwrap();
    assert_eq!(latch.state(), Ok(None), "a latch that nobody has used needs no reset");
}
