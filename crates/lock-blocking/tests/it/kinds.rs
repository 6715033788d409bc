//! Permits: what is refused before it is sent.

use std::time::Duration;

use lock_core::{AcquireError, Operation};
use lock_host::{CancelToken, Error, Unchanged};

use crate::support::{Bench, until};

#[test]
fn wrong_numbers_are_refused_before_anything_is_sent() {
    let bench = Bench::new();
    let client = bench.client();
    for (limit, count) in [(0, 1), (4, 0), (4, 5)] {
        let semaphore = client.semaphore("a", limit);
        assert!(matches!(semaphore.acquire_many(count), Err(AcquireError::Invalid(_))));
        assert!(matches!(semaphore.try_acquire_many(count), Err(AcquireError::Invalid(_))));
    }
    assert_eq!(bench.faults.calls(Operation::Acquire), 0);
    let mut guard = client.semaphore("a", 4).acquire_many(2).unwrap();
    for count in [0, 2, 3] {
        let refused = guard.give_back(count).unwrap_err();
        assert!(matches!(refused.reason(), Unchanged::Refused(AcquireError::Invalid(_))));
        guard = refused.into_guard();
    }
    assert_eq!(bench.faults.calls(Operation::Acquire), 1);
    guard.release().unwrap();
}

#[test]
fn several_permits_are_asked_for_in_every_way() {
    let bench = Bench::new();
    let semaphore = bench.client().semaphore("a", 3).why("import").max_requests(1);
    let guard = semaphore.acquire_many(2).unwrap();
    assert_eq!(guard.slots(), [0, 1]);
    assert!(semaphore.try_acquire_many(2).unwrap().is_none());
    assert!(matches!(semaphore.acquire_many(2), Err(AcquireError::TimedOut { .. })), "one attempt");
    let token = CancelToken::new();
    token.cancel();
    let cancelled = semaphore.clone().cancelled_by(&token);
    assert!(matches!(cancelled.acquire_many(2), Err(AcquireError::Cancelled)));
    assert!(semaphore.is_held_by(&guard));
    guard.release().unwrap();
    let counted = semaphore.run_while_held(|guard| guard.slots().len()).unwrap();
    let tried = semaphore.try_run_while_held(|guard| Ok::<_, Error>(guard.tokens().count())).unwrap();
    assert_eq!((counted, tried), (1, 1));
    assert_eq!(semaphore.acquire_many(3).unwrap().slots().len(), 3);
    assert!(matches!(semaphore.acquire_many(4), Err(AcquireError::Invalid(_))));
}

/// The same option in this facade: who is passed, and who is not, is decided by station and store.
#[test]
fn a_barging_reader_passes_a_writer_that_waits() {
    let bench = Bench::new();
    let (one, other, writer) = (bench.client(), bench.client(), bench.client().rw_lock("a").write());
    let first = one.rw_lock("a").read().acquire().unwrap();
    let waiter = std::thread::spawn(move || writer.acquire().unwrap().release());
    until(|| other.rw_lock("a").read().try_acquire().unwrap().is_none());
    // The answer that nobody waits holds for this long.
    bench.clock.advance(Duration::from_millis(20));
    for client in [&one, &other] {
        assert!(client.rw_lock("a").read().try_acquire().unwrap().is_none());
        client.rw_lock("a").read().barging().try_acquire().unwrap().expect("it fits").release().unwrap();
    }
    first.release().unwrap();
    waiter.join().unwrap().unwrap();
}
