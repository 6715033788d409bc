//! The tasks that wait or hold at a site.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use lock_core::station::{ByTurn, TurnId};
use lock_core::{BackendError, Hold, LossReason, Moment, Refusal, Released};
use lock_host::Waiters;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, oneshot};

use crate::own::Own;

/// The station's answer to a waiter.
pub(crate) type Verdict = Result<Arc<Hold>, Refusal>;

/// The outcome of a turn.
pub(crate) type Ended = Result<Released, BackendError>;

/// How long a request may depend on a task that is not polled before a loop gets it. Chosen: much shorter than a lease,
/// and longer than nearly all requests take.
const UNPOLLED_MAX: Duration = Duration::from_secs(1);

/// The tasks that wait or hold at a site.
#[derive(Default)]
pub(crate) struct Tasks {
    by_turn: ByTurn<Task>,
    /// Notified when a hold ends, if any task waits for that.
    ends: Option<Arc<Notify>>,
    /// The requests that are not in a loop yet.
    pub(crate) own: Own,
}

/// A task that waits or holds.
enum Task {
    Waits(oneshot::Sender<Verdict>),
    Holds { hold: Arc<Hold>, hears: Option<Hears> },
}

/// What a task that holds waits for.
enum Hears {
    End(oneshot::Sender<Ended>),
    Change(oneshot::Sender<Verdict>),
}

impl Tasks {
    /// A task begins to wait. The sender lives until the station has answered.
    pub(crate) fn begin(&mut self, turn: TurnId) -> oneshot::Receiver<Verdict> {
        let (sender, verdict) = oneshot::channel();
        self.by_turn.insert(turn, Task::Waits(sender));
        verdict
    }

    /// A task holds without having waited.
    pub(crate) fn hold(&mut self, turn: TurnId, hold: Arc<Hold>) {
        self.by_turn.insert(turn, Task::Holds { hold, hears: None });
    }

    /// Sets the receiver of a hold's outcome. Returns false if the turn has already ended.
    pub(crate) fn hear_end(&mut self, turn: TurnId, ended: Option<oneshot::Sender<Ended>>) -> bool {
        self.hear(turn, ended.map(Hears::End))
    }

    /// Sets the receiver of the verdict on a hold's change. Returns false if the turn has already ended.
    pub(crate) fn hear_change(&mut self, turn: TurnId, verdict: oneshot::Sender<Verdict>) -> bool {
        self.hear(turn, Some(Hears::Change(verdict)))
    }

    fn hear(&mut self, turn: TurnId, what: Option<Hears>) -> bool {
        match self.by_turn.get_mut(turn) {
            Some(Task::Holds { hears, .. }) => *hears = what,
            Some(Task::Waits(_)) => {}
            None => return false,
        }
        true
    }

    /// A task that waits gets no more news of its turn.
    pub(crate) fn forget_waiting(&mut self, turn: TurnId) {
        if let Some(Task::Waits(_)) = self.by_turn.get(turn) {
            self.by_turn.remove(turn);
        }
    }

    /// The next end of any hold here, from now on.
    pub(crate) fn next_end(&mut self) -> OwnedNotified {
        Arc::clone(self.ends.get_or_insert_default()).notified_owned()
    }

    /// Takes out a turn that has ended.
    fn remove(&mut self, turn: TurnId) -> Option<Task> {
        self.ends.take().into_iter().for_each(|ends| ends.notify_waiters());
        self.by_turn.remove(turn)
    }
}

impl Waiters for Tasks {
    fn admit(&mut self, turn: TurnId, hold: Arc<Hold>) {
        let Some(task) = self.by_turn.get_mut(turn) else { return };
        let holds = Task::Holds { hold: Arc::clone(&hold), hears: None };
        if let Task::Waits(sender) = mem::replace(task, holds) {
            // If the acquire was dropped, there is no receiver, and the drop ends the turn.
            _ = sender.send(Ok(hold));
        }
    }

    fn refuse(&mut self, turn: TurnId, refusal: Refusal) {
        if let Some(Task::Waits(sender)) = self.by_turn.remove(turn) {
            _ = sender.send(Err(refusal));
        }
    }

    fn replaced(&mut self, turn: TurnId, result: Verdict) {
        let Some(Task::Holds { hold, hears }) = self.by_turn.get_mut(turn) else { return };
        if let Ok(new) = &result {
            *hold = Arc::clone(new);
        }
        if let Some(Hears::Change(verdict)) = hears.take() {
            _ = verdict.send(result);
        }
    }

    fn lose(&mut self, turn: TurnId, _: LossReason) {
        self.remove(turn);
    }

    fn end(&mut self, turn: TurnId, result: Result<Released, BackendError>) {
        if let Some(Task::Holds { hears: Some(Hears::End(ended)), .. }) = self.remove(turn) {
            _ = ended.send(result);
        }
    }

    fn forget(&mut self, turn: TurnId) {
        self.remove(turn);
    }

    fn turns(&self) -> Vec<(TurnId, Option<Arc<Hold>>)> {
        let hold = |task: &Task| match task {
            Task::Waits(_) => None,
            Task::Holds { hold, .. } => Some(Arc::clone(hold)),
        };
        self.by_turn.iter().map(|(turn, task)| (turn, hold(task))).collect()
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
