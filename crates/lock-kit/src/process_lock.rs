//! Locks of this process: a queue for each lock, shared by all clients and both facades.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use lock_core::{AcquireError, BackendError, Location, LockName};
use lock_host::{Member, Wake, WakeRegistration};

static QUEUES: Mutex<Queues> = Mutex::new(Queues { last: 0, all: BTreeMap::new() });

struct Queues {
    last: u64,
    all: BTreeMap<Key, LocalQueue>,
}

/// The waiters and the holder of one lock.
#[derive(Debug, Default)]
struct LocalQueue {
    /// In the order of arrival. The first one asks the store.
    waiters: BTreeMap<u64, Option<Waker>>,
    /// The holder of the lock.
    held_by: Option<u64>,
}

impl LocalQueue {
    /// The holder, or else the first waiter.
    fn front(&self) -> Option<u64> {
        self.held_by.or_else(|| self.waiters.keys().next().copied())
    }
}

/// The key of a lock of this process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Where a store keeps it.
    At(Location),
    /// Of a client that does not know its server: such clients share one queue for each name, even if their servers differ.
    Named(LockName),
}

/// A waiter in the queue of a lock. Dropping it leaves the queue, or releases the lock.
#[derive(Debug)]
pub(crate) struct LocalWaiter {
    entry: Arc<QueueEntry>,
    /// The end of the client, which also ends the wait.
    client: WakeRegistration,
}

impl LocalWaiter {
    /// Joins the queue for this lock.
    pub(crate) fn join(lock: &Member) -> Self {
        let entry =
            Arc::new(QueueEntry::join(lock.location.clone().map_or_else(|| Key::Named(lock.name.clone()), Key::At)));
        let whom: Arc<dyn Wake> = Arc::<QueueEntry>::clone(&entry);
        let client = lock.close_signal.wakes(&lock.name, Arc::downgrade(&whom));
        Self { entry, client }
    }

    /// Whether it is its turn: nobody holds the lock, and it is the first waiter.
    pub(crate) fn is_first(&self) -> bool {
        self.entry.with_queue(|queue| queue.front() == Some(self.entry.id))
    }

    /// Whether somebody else of this process holds the lock.
    pub(crate) fn is_held(&self) -> bool {
        self.entry.with_queue(|queue| queue.held_by.is_some_and(|id| id != self.entry.id))
    }

    /// Takes the lock for this process, unless somebody else holds it.
    pub(crate) fn take(&self) -> bool {
        self.entry.with_queue(|queue| *queue.held_by.get_or_insert(self.entry.id) == self.entry.id)
    }

    /// The outcome of a try at the store, unless that is an error and an earlier waiter has to degrade first.
    ///
    /// # Errors
    /// That of the store, if so.
    pub(crate) fn after_earlier<G>(
        &self,
        outcome: Option<Result<G, BackendError>>,
    ) -> Result<Option<Result<G, BackendError>>, AcquireError> {
        match outcome {
            Some(Err(error)) if !self.is_first() && !self.is_held() => Err(error.into()),
            outcome => Ok(outcome),
        }
    }

    /// Ready once it is its turn. The waker is woken then, and when the client is closed.
    ///
    /// # Errors
    /// `Closed` if the client is closed before.
    pub(crate) fn poll_first(&self, waker: &Waker) -> Poll<Result<(), AcquireError>> {
        match self.entry.poll_first(waker) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            // Read last: a client that is closed later wakes the waker.
            Poll::Pending if self.client.is_over() => Poll::Ready(Err(AcquireError::Closed)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// An entry of a queue.
#[derive(Debug)]
struct QueueEntry {
    key: Key,
    id: u64,
}

impl QueueEntry {
    fn join(key: Key) -> Self {
        let mut queues = queues();
        queues.last += 1;
        let id = queues.last;
        queues.all.entry(key.clone()).or_default().waiters.insert(id, None);
        Self { key, id }
    }

    /// Reads or changes its queue.
    fn with_queue<T>(&self, change: impl FnOnce(&mut LocalQueue) -> T) -> T
    where
        T: Default,
    {
        queues().all.get_mut(&self.key).map(change).unwrap_or_default()
    }

    /// Whether it is its turn. If not, the waker is woken once it is.
    fn poll_first(&self, waker: &Waker) -> Poll<()> {
        let mut queues = queues();
        let Some(queue) = queues.all.get_mut(&self.key) else { return Poll::Ready(()) };
        if queue.front() == Some(self.id) {
            return Poll::Ready(());
        }
        queue.waiters.insert(self.id, Some(waker.clone()));
        Poll::Pending
    }

    /// Leaves the queue. Returns the waker of the next waiter, if its turn has come.
    fn leave(&self) -> Option<Waker> {
        let mut queues = queues();
        let queue = queues.all.get_mut(&self.key)?;
        let was_first = queue.front() == Some(self.id);
        queue.waiters.remove(&self.id);
        queue.held_by.take_if(|id| *id == self.id);
        if queue.waiters.is_empty() {
            queues.all.remove(&self.key);
            return None;
        }
        queue.waiters.values_mut().next().filter(|_| was_first).and_then(mem::take)
    }
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        // Done last: the woken task may join a queue.
        self.leave().into_iter().for_each(Waker::wake);
    }
}

impl Wake for QueueEntry {
    fn wake(&self) {
        let waker = queues().all.get(&self.key).and_then(|queue| queue.waiters.get(&self.id)?.clone());
        waker.into_iter().for_each(Waker::wake);
    }
}

fn queues() -> MutexGuard<'static, Queues> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn join(lock: &str) -> QueueEntry {
        QueueEntry::join(Key::Named(lock.parse().unwrap()))
    }

    #[test]
    fn who_came_first_holds_and_the_next_one_is_woken_once() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let woken = || count.0.load(Ordering::Relaxed);
        let (one, two, three) = (join("queue"), join("queue"), join("queue"));
        let is_first = |entry: &QueueEntry| entry.with_queue(|queue| queue.front() == Some(entry.id));
        assert!(is_first(&one) && !is_first(&two) && is_first(&join("another queue")));
        assert!(two.poll_first(&waker).is_pending() && three.poll_first(&waker).is_pending());
        drop(two);
        assert!(woken() == 0 && !is_first(&three), "the first one still holds");
        drop(one);
        assert!(woken() == 1 && three.poll_first(&waker).is_ready());
        let key = three.key.clone();
        drop(three);
        assert!(woken() == 1 && !queues().all.contains_key(&key), "nothing is left");
    }
}
