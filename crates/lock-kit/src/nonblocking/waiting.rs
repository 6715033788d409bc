//! Waiting, in async code.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use lock_async::{Guard, Mutex};
use lock_core::{AcquireError, Lost, TryAcquireError};
use lock_host::{CancelToken, Member, Wake};
use tokio::sync::Notify;

use crate::degrading::DegradingCall;
use crate::errors::ObserveError;
use crate::process_lock::LocalWaiter;

pub(super) use futures_util::future::join_all;

/// Tries to take the locks in this order, all at the same time, so that a store can serve them together.
pub(super) async fn try_all(mutexes: &[Mutex], order: &[usize]) -> Vec<Result<Guard, TryAcquireError>> {
    join_all(order.iter().map(|&index| mutexes[index].try_acquire_or_holder())).await
}

/// Works until the lock is lost. Work that awaits nothing is not stopped.
pub(super) async fn until_lost<T>(guard: &Guard, work: impl AsyncFnOnce(&Guard) -> T) -> Result<T, Lost> {
    match select(pin!(guard.lost()), pin!(work(guard))).await {
        Either::Left((lost, _)) => Err(lost),
        Either::Right((done, _)) => Ok(done),
    }
}

/// Waits for earlier callers of this process. False if the wait times out first.
pub(super) async fn in_turn(call: &DegradingCall, waiter: &LocalWaiter) -> Result<bool, AcquireError> {
    let mut watch = None;
    let turn = poll_fn(|context| {
        let waker = context.waker().clone();
        // Until the next poll, which watches anew.
        watch = call.cancel().map(|cancel| cancel.watch(move || waker.wake()));
        if call.cancel().is_some_and(CancelToken::is_cancelled) {
            return Poll::Ready(Err(AcquireError::Cancelled));
        }
        waiter.poll_first(context.waker())
    });
    match call.left() {
        Some(left) => tokio::time::timeout(left, turn).await.map_or(Ok(false), |turn| turn.map(|()| true)),
        None => turn.await.map(|()| true),
    }
}

/// Rings when the client may have been closed.
#[derive(Default)]
struct WakeSignal(Notify);

impl Wake for WakeSignal {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// Waits for so long.
///
/// # Errors
/// `Closed` as soon as the client is closed.
pub(super) async fn pause(lock: &Member, time: Duration) -> Result<(), ObserveError> {
    let signal = Arc::new(WakeSignal::default());
    let whom: Arc<dyn Wake> = Arc::<WakeSignal>::clone(&signal);
    let client = lock.close_signal.wakes(&lock.name, Arc::downgrade(&whom));
    let closed = async {
        while !client.is_over() {
            signal.0.notified().await;
        }
    };
    tokio::time::timeout(time, closed).await.map_or(Ok(()), |()| Err(ObserveError::Closed))
}
