//! Inline requests: the waiting task polls its own request while that is the only one at its site, which saves a hop to the driver task.
//!
//! Such a request still belongs to the site; the task only polls it. As soon as anything else happens at the site, or
//! the task ends, a loop of the driver continues the request. So no other waiter depends on a task that may not be
//! polled, and dropping the task cancels nothing.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::future::FutureExt;
use lock_core::station::ActionId;

use crate::work::{Answered, Driver, Running};

/// A request that a task which waits for it may poll, until it is recalled.
pub(crate) struct InlineRequest {
    id: ActionId,
    state: Mutex<State>,
}

enum State {
    /// It was not given to a task.
    Fresh(Running),
    /// It was given to a task, which has not polled it.
    Unpolled(Running),
    /// Nobody polls it now. The waker is that of the task.
    Resting(Running, Waker),
    /// The task polls it.
    Polled,
    /// The task polls it, and then a loop gets it.
    Recalled,
    /// The task has nothing to poll any more.
    Gone,
}

impl InlineRequest {
    /// The answer; `None` if a loop has the request.
    pub(crate) fn poll(&self, driver: &Driver, cx: &mut Context<'_>) -> Poll<Option<Answered>> {
        let Some(mut request) = self.take() else { return Poll::Ready(None) };
        // Timers and connections belong to the client's runtime, wherever this is polled. If that runtime has ended, the
        // request is dropped, which hands the rest of its work to the keeper's runtime.
        let _entered = driver.runtime.enter();
        let polled = if driver.here.is_closed() { Poll::Ready(None) } else { request.poll_unpin(cx) };
        if polled.is_pending() {
            return self.rest(request, cx.waker().clone(), driver);
        }
        *self.lock() = State::Gone;
        polled
    }

    fn take(&self) -> Option<Running> {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Polled) {
            State::Unpolled(request) | State::Resting(request, _) => Some(request),
            other @ (State::Fresh(_) | State::Polled | State::Recalled | State::Gone) => {
                *state = other;
                None
            }
        }
    }

    /// Ends a poll. The task keeps the request, unless that was recalled meanwhile.
    fn rest(&self, request: Running, waker: Waker, driver: &Driver) -> Poll<Option<Answered>> {
        let mut state = self.lock();
        if let State::Polled = *state {
            *state = State::Resting(request, waker);
            return Poll::Pending;
        }
        *state = State::Gone;
        drop(state);
        driver.run_in_loop(request);
        Poll::Ready(None)
    }

    /// Hands the request to a loop: now, or when the current poll ends.
    fn recall(&self, driver: &Driver) {
        let mut state = self.lock();
        let before = mem::replace(&mut *state, State::Gone);
        if let State::Polled | State::Recalled = before {
            *state = State::Recalled;
        }
        drop(state);
        match before {
            State::Fresh(request) | State::Unpolled(request) => driver.run_in_loop(request),
            State::Resting(request, waker) => {
                driver.continue_elsewhere(request);
                waker.wake();
            }
            State::Polled | State::Recalled | State::Gone => {}
        }
    }

    /// Gives it to a task, unless one has it: a second one would take over the wake-ups of the first.
    fn assign(&self) -> bool {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Gone) {
            State::Fresh(request) => {
                *state = State::Unpolled(request);
                true
            }
            other @ (State::Unpolled(_) | State::Resting(..) | State::Polled | State::Recalled | State::Gone) => {
                *state = other;
                false
            }
        }
    }

    fn is_polled(&self) -> bool {
        matches!(*self.lock(), State::Polled | State::Recalled)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests of a site that have no answer yet.
#[derive(Default)]
pub(crate) struct Requests {
    /// How many there are, including those in the loops.
    unanswered: usize,
    /// The only one, which a task may poll until a loop gets it.
    only: Option<Arc<InlineRequest>>,
}

impl Requests {
    /// Adds a request of the station. If it is the only one, a task may poll it; otherwise a loop gets it.
    pub(crate) fn push(&mut self, id: ActionId, request: Running, driver: &Driver) {
        self.unanswered += 1;
        if self.unanswered == 1 {
            self.only = Some(Arc::new(InlineRequest { id, state: Mutex::new(State::Fresh(request)) }));
        } else {
            self.hand_over(driver);
            driver.run_in_loop(request);
        }
    }

    /// Gives the newest request to the task that waits for it. If another task has it already, a loop gets it.
    pub(crate) fn take_inline(&mut self, driver: &Driver) -> Option<Arc<InlineRequest>> {
        let inline = self.only.clone().filter(|inline| inline.assign());
        if inline.is_none() {
            self.hand_over(driver);
        }
        inline
    }

    /// Gives the request that a task may poll to a loop.
    pub(crate) fn hand_over(&mut self, driver: &Driver) {
        self.only.iter().for_each(|inline| inline.recall(driver));
    }

    /// A request was answered.
    pub(crate) fn answered(&mut self, id: ActionId) {
        self.unanswered -= 1;
        self.only.take_if(|inline| inline.id == id);
    }

    /// Whether a task is polling a request.
    pub(crate) fn is_polled(&self) -> bool {
        self.only.as_ref().is_some_and(|inline| inline.is_polled())
    }

    /// Whether a request may be waiting for a task to poll it.
    pub(crate) fn may_depend_on_task(&self) -> bool {
        self.only.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_memory::MemoryStore;

    use super::*;
    use crate::Client;

    /// If two tasks polled a request, its answer would wake only the one that polled last.
    #[tokio::test]
    async fn a_request_is_given_to_one_of_the_tasks_that_wait_for_it() {
        let client = Client::new(Arc::new(MemoryStore::default().nonblocking())).unwrap();
        let mutex = client.mutex("a");
        let call = mutex.0.ask().unwrap();
        let join = || {
            let (mut joined, turn, _) = call.join();
            let inline = joined.waiters.requests.take_inline(&turn.site().context().driver);
            drop(joined);
            (inline, turn)
        };
        let [first, second] = [join(), join()];
        assert!(first.0.is_some() && second.0.is_none());
        let is_admitted = || first.1.site().lock().waiters.turns.poll_result(first.1.id()).is_ready();
        let admitted = async {
            while !is_admitted() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), admitted).await.expect("a loop has the request");
    }
}
