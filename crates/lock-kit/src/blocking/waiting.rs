//! Waiting, for threads.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::thread::{self, Builder, Thread, scope};
use std::time::{Duration, Instant};

use lock_blocking::{CancelToken, Guard, Mutex};
use lock_core::{AcquireError, Lost, TryAcquireError};
use lock_host::Member;

use crate::degrading::DegradingCall;
use crate::errors::ObserveError;
use crate::process_lock::LocalWaiter;

/// How many calls are made at the same time. Chosen: more threads take longer to start than a request takes.
const CALLS_MAX: usize = 32;

/// Tries to take the locks in this order, all at the same time.
pub(super) fn try_all(mutexes: &[Mutex], order: &[usize]) -> Vec<Result<Guard, TryAcquireError>> {
    concurrently(order, |&index| mutexes[index].try_acquire_or_holder())
}

/// Calls a function for each item, and returns the results in the order of the items. The caller's thread makes the first
/// call, and each other that no thread can be started for.
fn concurrently<T, R>(items: &[T], call: impl Fn(&T) -> R + Sync) -> Vec<R>
where
    T: Sync,
    R: Send,
{
    items.chunks(CALLS_MAX).flat_map(|items| together(items, &call)).collect()
}

fn together<T: Sync, R: Send>(items: &[T], call: &(impl Fn(&T) -> R + Sync)) -> Vec<R> {
    let Some((first, others)) = items.split_first() else { return Vec::new() };
    scope(|scope| {
        let start = |item| Builder::new().spawn_scoped(scope, move || call(item)).map_err(|_| item);
        let others: Vec<_> = others.iter().map(start).collect();
        let mut results = vec![call(first)];
        results.extend(others.into_iter().map(|other| match other {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(item) => call(item),
        }));
        results
    })
}

/// Makes all calls, one after the other.
pub(super) fn join_all<T>(calls: impl Iterator<Item = T>) -> Vec<T> {
    calls.collect()
}

/// Works if the lock is held. Nothing stops a thread.
pub(super) fn until_lost<T>(guard: &Guard, work: impl FnOnce(&Guard) -> T) -> Result<T, Lost> {
    guard.check().map(|()| work(guard))
}

/// Waits for earlier callers of this process. False if the wait times out first.
pub(super) fn in_turn(call: &DegradingCall, waiter: &LocalWaiter) -> Result<bool, AcquireError> {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let _watch = call.cancel().map(|cancel| {
        let waker = waker.clone();
        cancel.watch(move || waker.wake())
    });
    loop {
        if let Poll::Ready(turn) = waiter.poll_first(&waker) {
            return turn.map(|()| true);
        }
        if call.cancel().is_some_and(CancelToken::is_cancelled) {
            return Err(AcquireError::Cancelled);
        }
        match call.left() {
            Some(Duration::ZERO) => return Ok(false),
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}

/// A thread that is woken when its turn may have come, or when the client may have been closed.
struct ThreadWaker(Thread);

impl task::Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl lock_host::Wake for ThreadWaker {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Waits for so long.
///
/// # Errors
/// `Closed` as soon as the client is closed.
pub(super) fn pause(lock: &Member, time: Duration) -> Result<(), ObserveError> {
    let whom: Arc<dyn lock_host::Wake> = Arc::new(ThreadWaker(thread::current()));
    let client = lock.close_signal.wakes(&lock.name, Arc::downgrade(&whom));
    let began = Instant::now();
    while !client.is_over() {
        let left = time.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        thread::park_timeout(left);
    }
    Err(ObserveError::Closed)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn calls_are_made_at_the_same_time_and_answered_in_order() {
        let all_here = Barrier::new(CALLS_MAX);
        let items: Vec<_> = (0..CALLS_MAX * 2).collect();
        let call = |item: &usize| {
            all_here.wait();
            item * 2
        };
        let doubled = test_support::bounds::within("all calls to be made", || concurrently(&items, call));
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(concurrently(&[], |item: &usize| *item).is_empty());
    }
}
