//! The tasks that wait or hold at a site.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lock_core::station::TurnId;
use lock_core::{BackendError, Hold, LossReason, Moment, Refusal, Released};
use lock_host::Waiters;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, oneshot};

use crate::own::Own;

/// The station's answer to a waiter.
pub(crate) type Verdict = Result<Arc<Hold>, Refusal>;

/// The outcome of a turn.
pub(crate) type Ended = Result<Released, BackendError>;

/// How long a request waits for a task that runs it and is not polled, until a loop gets it. Chosen: much shorter than a
/// lease, and so long that hardly any request lives to see it.
const UNPOLLED_MAX: Duration = Duration::from_secs(1);

/// The tasks that wait or hold at a site.
#[derive(Default)]
pub(crate) struct Tasks {
    by_turn: HashMap<TurnId, Task>,
    ends: Arc<Notify>,
    /// The requests that no loop has yet.
    pub(crate) own: Own,
}

/// A task that waits or holds.
#[derive(Default)]
struct Task {
    verdict: Option<oneshot::Sender<Verdict>>,
    ended: Option<oneshot::Sender<Ended>>,
    hold: Option<Arc<Hold>>,
}

impl Tasks {
    /// A task begins to wait. The sender lives until the station has answered.
    pub(crate) fn begin(&mut self, turn: TurnId) -> oneshot::Receiver<Verdict> {
        let (sender, verdict) = oneshot::channel();
        self.by_turn.insert(turn, Task { verdict: Some(sender), ..Task::default() });
        verdict
    }

    /// Sets who gets the outcome of a turn. Returns whether the turn has not ended yet.
    pub(crate) fn hear_end(&mut self, turn: TurnId, ended: Option<oneshot::Sender<Ended>>) -> bool {
        self.by_turn.get_mut(&turn).map(|task| task.ended = ended).is_some()
    }

    /// A task that waits gets no more news of its turn.
    pub(crate) fn forget_waiting(&mut self, turn: TurnId) {
        if self.by_turn.get(&turn).is_some_and(|task| task.verdict.is_some()) {
            self.by_turn.remove(&turn);
        }
    }

    /// The next end of any hold here, from now on.
    pub(crate) fn next_end(&self) -> OwnedNotified {
        Arc::clone(&self.ends).notified_owned()
    }
}

impl Waiters for Tasks {
    fn admit(&mut self, turn: TurnId, hold: Arc<Hold>) {
        let Some(task) = self.by_turn.get_mut(&turn) else { return };
        task.hold = Some(Arc::clone(&hold));
        // Nobody listens any more if the acquire was dropped, which ends its turn itself.
        _ = task.verdict.take().map(|sender| sender.send(Ok(hold)));
    }

    fn refuse(&mut self, turn: TurnId, refusal: Refusal) {
        _ = self.by_turn.remove(&turn).and_then(|task| task.verdict).map(|sender| sender.send(Err(refusal)));
    }

    fn lose(&mut self, turn: TurnId, _: LossReason) {
        self.by_turn.remove(&turn);
        self.ends.notify_waiters();
    }

    fn end(&mut self, turn: TurnId, result: Result<Released, BackendError>) {
        _ = self.by_turn.remove(&turn).and_then(|task| task.ended).map(|sender| sender.send(result));
        self.ends.notify_waiters();
    }

    fn turns(&self) -> Vec<(TurnId, Option<Arc<Hold>>)> {
        self.by_turn.iter().map(|(turn, task)| (*turn, task.hold.clone())).collect()
    }

    fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }

    fn next_wake(&self, now: Moment) -> Option<Moment> {
        self.own.is_waiting().then(|| now + UNPOLLED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_host::Waiters;
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
        let site = client.0.find(&"a".parse().unwrap()).unwrap();
        let turns = site.lock().waiters.turns();
        assert_eq!(turns.len(), 2, "{turns:?}");
        drop(guard);
        waiting.await.unwrap().unwrap();
    }
}
