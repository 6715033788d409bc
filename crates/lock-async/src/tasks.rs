//! The tasks that wait or hold at a site.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_core::Moment;
use lock_core::station::TurnId;
use lock_host::{Turns, Waiters, Wake};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::inline_requests::Requests;

/// How long a request may depend on a task that is not polled before a loop gets it. Chosen: much shorter than a lease,
/// and longer than nearly all requests take.
const UNPOLLED_MAX: Duration = Duration::from_secs(1);

/// The tasks that wait or hold at a site.
#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) turns: Turns<Task>,
    pub(crate) requests: Requests,
}

/// The tasks to wake when the state of a turn changes. Most turns hold a lock, and nobody waits for a change.
#[derive(Default)]
pub(crate) struct Task(Option<Box<Listeners>>);

#[derive(Default)]
struct Listeners {
    /// The task that waits, or leaves.
    own: Option<Waker>,
    /// The tasks that watch its hold.
    others: Option<Arc<Notify>>,
}

impl Task {
    /// The next change of the turn, from now on, for a task that watches it.
    pub(crate) fn changed(&mut self) -> OwnedNotified {
        let listeners = self.0.get_or_insert_default();
        Arc::clone(listeners.others.get_or_insert_default()).notified_owned()
    }

    /// Sets what wakes the task that waits or leaves.
    fn listen(&mut self, own: Option<Waker>) {
        if own.is_some() || self.0.is_some() {
            self.0.get_or_insert_default().own = own;
            self.0.take_if(|listeners| listeners.own.is_none() && listeners.others.is_none());
        }
    }
}

impl Tasks {
    /// Polls for a task. If the turn has no result yet, the task is woken later.
    pub(crate) fn poll<T>(&mut self, turn: TurnId, poll: PollTurn<T>, cx: &Context<'_>) -> Poll<T> {
        let polled = poll(&mut self.turns, turn);
        if let Some(task) = self.turns.get_mut(turn) {
            task.listen(polled.is_pending().then(|| cx.waker().clone()));
        }
        polled
    }
}

/// The result that a task polls for.
pub(crate) type PollTurn<T> = fn(&mut Turns<Task>, TurnId) -> Poll<T>;

impl Wake for Task {
    fn wake(&self) {
        if let Some(listeners) = &self.0 {
            listeners.own.iter().for_each(Waker::wake_by_ref);
            listeners.others.iter().for_each(|others| others.notify_waiters());
        }
    }
}

impl Waiters for Tasks {
    type Waiter = Task;

    fn turns(&mut self) -> &mut Turns<Task> {
        &mut self.turns
    }

    fn next_wake(&self, now: Moment) -> Option<Moment> {
        self.requests.may_depend_on_task().then(|| now + UNPOLLED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::NameKind;
    use lock_memory::MemoryStore;

    use crate::Client;

    /// A waiter that is cancelled again and again, beside one that stays, leaves nothing behind in this process either.
    #[tokio::test]
    async fn cancelled_waiters_leave_no_tasks() {
        let store = MemoryStore::default();
        let client = Client::new(std::sync::Arc::new(store.nonblocking())).unwrap();
        let guard = client.mutex("a").acquire().await.unwrap();
        let waiting = tokio::spawn({
            let mutex = client.mutex("a");
            async move { mutex.acquire().await.map(drop) }
        });
        for _ in 0..100 {
            let mutex = client.mutex("a");
            _ = tokio::time::timeout(Duration::from_micros(10), mutex.acquire()).await;
        }
        let site = client.0.find(&"a".parse().unwrap(), NameKind::Lock).unwrap();
        assert_eq!(site.lock().waiters.turns.len(), 2);
        drop(guard);
        waiting.await.unwrap().unwrap();
    }
}
