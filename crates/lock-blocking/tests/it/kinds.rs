//! Permits: what is refused before it is sent.

use lock_core::{AcquireError, Operation};
use lock_host::Unchanged;

use crate::support::Bench;

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
        assert!(matches!(*refused.reason, Unchanged::Refused(AcquireError::Invalid(_))));
        guard = refused.guard;
    }
    assert_eq!(bench.faults.calls(Operation::Acquire), 1);
    guard.release().unwrap();
}
