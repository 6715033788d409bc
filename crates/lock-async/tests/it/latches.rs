//! Waiting for a latch, and arriving while the store fails.

use std::time::Duration;

use lock_async::Client;
use lock_core::latch::{LatchError, REPEAT_FOR};
use lock_core::{Effect, ErrorKind, Operation};
use lock_memory::faults::Fault;
use tokio::task::JoinHandle;

use crate::support::{Bench, PATIENCE, until};

type Waiting = JoinHandle<Result<(), LatchError>>;

/// Begins to wait for the latch "a", and has looked at it.
async fn waiting(bench: &Bench, client: &Client) -> Waiting {
    let (latch, before) = (client.latch("a"), bench.faults.ran(Operation::Latch));
    let waiting = tokio::spawn(async move { latch.wait().await });
    until(|| bench.faults.ran(Operation::Latch) > before).await;
    waiting
}

async fn outcome(waiting: Waiting) -> Result<(), LatchError> {
    tokio::time::timeout(PATIENCE, waiting).await.expect("the wait ends in time").unwrap()
}

#[tokio::test]
async fn a_waiter_is_woken_by_the_last_arrival_without_asking_meanwhile() {
    let bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    two.latch("a").expect(1).await.unwrap();
    let (waiting, asked) = (waiting(&bench, &one).await, bench.faults.calls(Operation::Latch));
    // The clock stands still, so nothing but the event can wake it.
    let latch = two.latch("a");
    assert!(latch.arrive().await.unwrap().is_complete());
    outcome(waiting).await.unwrap();
    assert_eq!(bench.faults.calls(Operation::Latch), asked + 2, "one arrival, one look");
}

#[tokio::test]
async fn closing_the_client_ends_a_wait() {
    let bench = Bench::new();
    let client = bench.client();
    let waiting = waiting(&bench, &client).await;
    client.close().await;
    assert_eq!(outcome(waiting).await, Err(LatchError::Closed));
    assert_eq!(client.latch("a").arrive().await, Err(LatchError::Closed));
}

#[tokio::test]
async fn an_arrival_outlasts_an_outage_and_counts_once() {
    let bench = Bench::new();
    let client = bench.client();
    bench.faults.fail_next(Operation::Latch, Fault::LostReply);
    bench.faults.fail_next(Operation::Latch, Fault::Refused(ErrorKind::Unreachable));
    let latch = client.latch("a");
    let arriving = tokio::spawn(async move { latch.arrive().await });
    until(|| {
        bench.clock.advance(Duration::from_millis(100));
        arriving.is_finished()
    })
    .await;
    assert_eq!(arriving.await.unwrap().unwrap().arrived, 1);
    assert_eq!(bench.faults.calls(Operation::Latch), 3);
}

#[tokio::test]
async fn an_arrival_that_was_never_answered_says_that_it_may_count() {
    let bench = Bench::new();
    let client = bench.client();
    bench.faults.fail_next(Operation::Latch, Fault::LostReply);
    bench.faults.fail_all(Operation::Latch, Fault::Refused(ErrorKind::Unreachable));
    let (latch, begin) = (client.latch("a"), bench.faults.calls(Operation::Latch));
    let arriving = tokio::spawn(async move { latch.arrive().await });
    until(|| bench.faults.calls(Operation::Latch) > begin).await;
    bench.clock.advance(REPEAT_FOR);
    until(|| {
        bench.clock.advance(Duration::from_millis(100));
        arriving.is_finished()
    })
    .await;
    match arriving.await.unwrap() {
        Err(LatchError::Backend(error)) => assert_eq!(error.effect(), Effect::Unknown, "{error}"),
        other => panic!("{other:?}"),
    }
    bench.faults.heal(Operation::Latch);
    assert_eq!(client.latch("a").state().await.unwrap().map(|state| state.arrived), Some(1), "it did count");
}

#[tokio::test]
async fn what_is_invalid_sends_nothing() {
    let bench = Bench::new();
    let client = bench.client();
    for latch in [client.latch(""), client.latch("a").ttl(Duration::ZERO).ttl(Duration::from_secs(1))] {
        assert!(matches!(latch.arrive().await, Err(LatchError::Invalid(_))), "{latch:?}");
        assert!(matches!(latch.wait().await, Err(LatchError::Invalid(_))), "{latch:?}");
    }
    let latch = client.latch("a");
    assert!(matches!(latch.expect(0).await, Err(LatchError::Invalid(_))));
    assert!(matches!(latch.arrive_as("").await, Err(LatchError::Invalid(_))));
    assert_eq!(bench.faults.calls(Operation::Latch), 0);
    assert_eq!(latch.remaining().await, Ok(None));
    latch.reset().await.unwrap();
    assert_eq!(latch.state().await, Ok(None), "a latch that nobody has used needs no reset");
}
