//! Waits that another thread cancels.

use std::thread;
use std::time::Duration;

use lock_blocking::{CancelToken, Client};
use lock_core::{AcquireError, Operation};

use crate::support::{Bench, until};

const SECOND: Duration = Duration::from_secs(1);

/// Waits on a separate thread, and returns the outcome.
fn waiting(client: &Client, name: &str, cancel: &CancelToken) -> thread::JoinHandle<Result<(), AcquireError>> {
    let (mutex, cancel) = (client.mutex(name), cancel.clone());
    thread::spawn(move || mutex.cancelled_by(&cancel).acquire().map(drop))
}

/// The clock of the test stands still, so nothing but the token ends the waits.
#[test]
fn cancelled_waits_end_and_leave_no_place() {
    let bench = Bench::new();
    let (holder, other, shutdown) = (bench.client(), bench.client(), CancelToken::new());
    let guard = holder.mutex("a").acquire().unwrap();
    let asked = bench.faults.ran(Operation::Acquire);
    // One with a place, one behind it, and one behind the holder.
    let waits = [&other, &other, &holder].map(|client| waiting(client, "a", &shutdown));
    let stays = waiting(&holder, "a", &CancelToken::new());
    until(|| bench.faults.ran(Operation::Acquire) > asked);
    thread::sleep(Duration::from_millis(50));
    shutdown.cancel();
    for wait in waits {
        until(|| wait.is_finished());
        assert_eq!(wait.join().unwrap(), Err(AcquireError::Cancelled));
    }
    assert_eq!(bench.faults.ran(Operation::Release), 1, "the place of the client that asked");
    assert!(!stays.is_finished() && guard.check().is_ok(), "its token was not cancelled");
    guard.release().unwrap();
    until(|| stays.is_finished());
    assert_eq!(stays.join().unwrap(), Ok(()));
    assert!(bench.is_free("a"));
}

#[test]
fn a_wait_cancelled_with_its_request_in_flight_gives_the_grant_back() {
    let bench = Bench::new();
    let (client, shutdown) = (bench.client(), CancelToken::new());
    bench.faults.hold(Operation::Acquire);
    let wait = waiting(&client, "a", &shutdown);
    until(|| bench.faults.ran(Operation::Acquire) == 1);
    shutdown.cancel();
    assert!(!bench.is_free("a"), "the store had granted it");
    bench.faults.let_go(Operation::Acquire);
    until(|| wait.is_finished());
    assert_eq!(wait.join().unwrap(), Err(AcquireError::Cancelled));
    assert!(bench.is_free("a"), "its own thread has released it");
}

#[test]
fn a_token_that_is_cancelled_before_asks_nothing_and_one_that_is_cancelled_later_ends_no_hold() {
    let bench = Bench::new();
    let (client, shutdown) = (bench.client(), CancelToken::new());
    let guard = client.mutex("a").cancelled_by(&shutdown).acquire().unwrap();
    shutdown.cancel();
    assert!(guard.check().is_ok() && shutdown.is_cancelled());
    assert_eq!(guard.release(), Ok(()));
    let asked = bench.faults.calls(Operation::Acquire);
    assert_eq!(client.mutex("a").cancelled_by(&shutdown).acquire().map(drop), Err(AcquireError::Cancelled));
    assert_eq!(bench.faults.calls(Operation::Acquire), asked);
    assert!(matches!(client.mutex("").cancelled_by(&shutdown).acquire(), Err(AcquireError::Invalid(_))));
    assert_eq!(client.mutex("a").wait(SECOND).cancelled_by(&CancelToken::new()).acquire().map(drop), Ok(()));
}
