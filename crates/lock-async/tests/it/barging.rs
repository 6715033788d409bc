//! Who starves whom, counted in generations: in each, every holder gives up its hold and comes back.

use lock_async::{Client, Guard, NamedLock};
use lock_core::AcquireError;
use lock_host::LockOptions;

use crate::support::{Bench, until};

/// Chosen: as many as would be if the waiters that are passed were never served.
const GENERATIONS: u32 = 100;

/// `holders` each hold `lock`, and one by one they release it and ask for it again, at once. Meanwhile `patient` waits.
/// Returns in which generation it was served, if it was before the last.
async fn served_in<H: 'static, P: Send + 'static>(
    holders: &[NamedLock<H>],
    patient: impl Future<Output = Result<Guard<P>, AcquireError>> + Send + 'static,
    is_known_to_wait: impl AsyncFn() -> bool,
) -> Option<u32> {
    let mut held: Vec<Option<Guard<H>>> = Vec::new();
    for lock in holders {
        held.push(Some(lock.acquire().await.unwrap()));
    }
    let waiter = tokio::spawn(async move { patient.await.unwrap().release().await.unwrap() });
    while !is_known_to_wait().await {
        tokio::task::yield_now().await;
    }
    for generation in 1..=GENERATIONS {
        for (lock, place) in holders.iter().zip(&mut held) {
            if let Some(guard) = place.take() {
                guard.release().await.unwrap();
            }
            *place = lock.try_acquire().await.unwrap();
        }
        if held.iter().all(Option::is_none) {
            until(|| waiter.is_finished()).await;
            return Some(generation);
        }
    }
    assert!(!waiter.is_finished());
    for guard in held.into_iter().flatten() {
        guard.release().await.unwrap();
    }
    until(|| waiter.is_finished()).await;
    None
}

/// Clients with a lock each, with these options.
fn each<M>(bench: &Bench, count: usize, lock: impl Fn(&Client) -> NamedLock<M>) -> Vec<NamedLock<M>> {
    (0..count).map(|_| lock(&bench.client())).collect()
}

#[tokio::test]
async fn barging_readers_that_overlap_keep_a_writer_out_and_fair_ones_let_it_in_within_a_generation() {
    for (options, expected) in [(LockOptions::default(), Some(1)), (LockOptions::default().barging(), None)] {
        let bench = Bench::new();
        let readers = each(&bench, 8, |client| client.rw_lock("a").read().options(options.clone()));
        let (writer, other) = (bench.client().rw_lock("a").write(), bench.client().rw_lock("a").read());
        let waits = async || other.try_acquire().await.unwrap().is_none();
        assert_eq!(served_in(&readers, async move { writer.acquire().await }, waits).await, expected, "{options:?}");
    }
}

#[tokio::test]
async fn barging_requests_for_one_permit_keep_a_large_one_out_and_fair_ones_let_it_in_within_a_generation() {
    for (options, expected) in [(LockOptions::default(), Some(1)), (LockOptions::default().barging(), None)] {
        let bench = Bench::new();
        // One permit stays free, and the other three change hands one at a time.
        let small = each(&bench, 3, |client| client.semaphore("a", 4).options(options.clone()));
        let (large, other) = (bench.client().semaphore("a", 4), bench.client().semaphore("a", 4));
        let waits = async || other.try_acquire().await.unwrap().is_none();
        assert_eq!(served_in(&small, async move { large.acquire_many(4).await }, waits).await, expected, "{options:?}");
    }
}

/// The first in line gets a lock that is held alone, so there is nobody to pass.
#[tokio::test]
async fn a_lock_that_is_held_alone_refuses_to_pass_others() {
    let bench = Bench::new();
    let options = LockOptions::default().barging();
    let both = bench.client().rw_lock("a").options(options.clone());
    for lock in [bench.client().mutex("a").options(options.clone()), both.write().options(options)] {
        let Err(AcquireError::Invalid(invalid)) = lock.acquire().await else { panic!("it was accepted") };
        assert!(invalid.to_string().contains("fairness \"barging\""), "{invalid}");
    }
    both.write().acquire().await.unwrap().release().await.unwrap();
    both.read().acquire().await.unwrap().release().await.unwrap();
}
