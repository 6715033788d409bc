//! Readers, writers and permits: what is refused before it is sent, and futures that are dropped.

use lock_core::{AcquireError, Operation};
use lock_host::{CancelToken, Error, Unchanged};

use crate::cancellation::drop_after;
use crate::support::{Bench, YIELDS, Yielding};

#[tokio::test]
async fn wrong_numbers_are_refused_before_anything_is_sent() {
    let bench = Bench::new();
    let client = bench.client();
    for (limit, count) in [(0, 1), (4, 0), (4, 5)] {
        let semaphore = client.semaphore("a", limit);
        assert!(matches!(semaphore.acquire_many(count).await, Err(AcquireError::Invalid(_))));
        assert!(matches!(semaphore.try_acquire_many(count).await, Err(AcquireError::Invalid(_))));
    }
    assert_eq!(bench.faults.calls(Operation::Acquire), 0);
    let mut guard = client.semaphore("a", 4).acquire_many(2).await.unwrap();
    for count in [0, 2, 3] {
        let refused = guard.give_back(count).await.unwrap_err();
        assert!(matches!(refused.reason(), Unchanged::Refused(AcquireError::Invalid(_))));
        guard = refused.into_guard();
    }
    assert_eq!(bench.faults.calls(Operation::Acquire), 1);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn several_permits_are_asked_for_in_every_way() {
    let bench = Bench::new();
    let semaphore = bench.client().semaphore("a", 3).why("import").max_requests(1);
    let guard = semaphore.acquire_many(2).await.unwrap();
    assert_eq!(guard.slots(), [0, 1]);
    assert!(semaphore.try_acquire_many(2).await.unwrap().is_none());
    assert!(matches!(semaphore.acquire_many(2).await, Err(AcquireError::TimedOut { .. })), "one attempt");
    let token = CancelToken::new();
    token.cancel();
    let cancelled = semaphore.clone().cancelled_by(&token);
    assert!(matches!(cancelled.acquire_many(2).await, Err(AcquireError::Cancelled)));
    assert!(semaphore.is_held_by(&guard));
    guard.release().await.unwrap();
    let counted = semaphore.run_while_held(async |guard| guard.slots().len()).await.unwrap();
    let tried = semaphore.try_run_while_held(async |guard| Ok::<_, Error>(guard.tokens().count())).await.unwrap();
    assert_eq!((counted, tried), (1, 1));
    assert_eq!(semaphore.acquire_many(3).await.unwrap().slots().len(), 3);
    assert!(matches!(semaphore.acquire_many(4).await, Err(AcquireError::Invalid(_))));
}

/// Dropped before the request is sent, after the store has carried it out, and before the answer arrives.
#[tokio::test]
async fn a_change_dropped_at_any_point_releases_the_lock() {
    let bench = Bench::new();
    let client = bench.client_of(Yielding::new(bench.store.nonblocking()));
    for polls in 0..=2 * YIELDS {
        let [down, up, part] = [format!("down {polls}"), format!("up {polls}"), format!("part {polls}")];
        let guard = client.rw_lock(&down).write().acquire().await.unwrap();
        assert!(!drop_after(polls, guard.downgrade()).await);
        let guard = client.rw_lock(&up).read().acquire().await.unwrap();
        assert!(!drop_after(polls, guard.try_upgrade()).await);
        let guard = client.semaphore(&part, 4).acquire_many(4).await.unwrap();
        assert!(!drop_after(polls, guard.give_back(2)).await);
        for name in [&down, &up, &part] {
            bench.becomes_unused(name).await;
        }
    }
}

#[tokio::test]
async fn an_acquire_dropped_at_any_point_leaves_nothing() {
    let bench = Bench::new();
    let client = bench.client_of(Yielding::new(bench.store.nonblocking()));
    for polls in 0..=2 * YIELDS {
        let [read, permits] = [format!("read {polls}"), format!("permits {polls}")];
        assert!(!drop_after(polls, client.rw_lock(&read).read().acquire()).await);
        assert!(!drop_after(polls, client.semaphore(&permits, 4).acquire_many(3)).await);
        bench.becomes_unused(&read).await;
        bench.becomes_unused(&permits).await;
    }
}
