//! Locks of this process: one line for each lock, shared by all clients and both facades.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use lock_core::{AcquireError, Location, LockName};
use lock_host::{Awaiting, Member, Wake};

static LINES: Mutex<Lines> = Mutex::new(Lines { last: 0, all: BTreeMap::new() });

struct Lines {
    last: u64,
    /// Those who hold a lock or wait for it, in the order in which they came. The first one holds it.
    all: BTreeMap<Key, BTreeMap<u64, Option<Waker>>>,
}

/// What tells the locks of this process apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Where a store keeps it.
    At(Location),
    /// Of a client that does not know its server: such clients share one line for each name, also if their servers differ.
    Named(LockName),
}

/// A place in the line for a lock. Dropping it leaves the line, or releases the lock.
#[derive(Debug)]
pub(crate) struct Place {
    spot: Arc<Spot>,
    /// The end of the client, which ends the wait as well.
    client: Awaiting,
}

impl Place {
    /// Joins the line for this lock.
    pub(crate) fn join(lock: &Member) -> Self {
        let spot = Arc::new(Spot::join(lock.location.clone().map_or_else(|| Key::Named(lock.name.clone()), Key::At)));
        let whom: Arc<dyn Wake> = Arc::<Spot>::clone(&spot);
        let client = lock.closing.wakes(&lock.name, Arc::downgrade(&whom));
        Self { spot, client }
    }

    /// Whether it is the first one.
    pub(crate) fn is_first(&self) -> bool {
        self.spot.is_first()
    }

    /// Ready once it is the first one. The waker is woken then, and when the client is closed.
    ///
    /// # Errors
    /// `Closed` if the client is closed before.
    pub(crate) fn poll_first(&self, waker: &Waker) -> Poll<Result<(), AcquireError>> {
        match self.spot.poll_first(waker) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            // Looked at last: a client that is closed later wakes the waker.
            Poll::Pending if self.client.is_over() => Poll::Ready(Err(AcquireError::Closed)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Where it is in the line.
#[derive(Debug)]
struct Spot {
    key: Key,
    id: u64,
}

impl Spot {
    fn join(key: Key) -> Self {
        let mut lines = lines();
        lines.last += 1;
        let id = lines.last;
        lines.all.entry(key.clone()).or_default().insert(id, None);
        Self { key, id }
    }

    fn is_first(&self) -> bool {
        lines().all.get(&self.key).is_some_and(|line| line.keys().next() == Some(&self.id))
    }

    /// Whether it is the first one. If not, the waker is woken once it is.
    fn poll_first(&self, waker: &Waker) -> Poll<()> {
        let mut lines = lines();
        let Some(line) = lines.all.get_mut(&self.key) else { return Poll::Ready(()) };
        if line.keys().next() == Some(&self.id) {
            return Poll::Ready(());
        }
        line.insert(self.id, Some(waker.clone()));
        Poll::Pending
    }

    /// Leaves the line. What is to be woken, if somebody else is the first one now.
    fn leave(&self) -> Option<Waker> {
        let mut lines = lines();
        let line = lines.all.get_mut(&self.key)?;
        let was_first = line.keys().next() == Some(&self.id);
        line.remove(&self.id);
        if line.is_empty() {
            lines.all.remove(&self.key);
            return None;
        }
        line.values_mut().next().filter(|_| was_first).and_then(mem::take)
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        // Whatever is woken may join a line.
        self.leave().into_iter().for_each(Waker::wake);
    }
}

impl Wake for Spot {
    fn wake(&self) {
        let waker = lines().all.get(&self.key).and_then(|line| line.get(&self.id)?.clone());
        waker.into_iter().for_each(Waker::wake);
    }
}

fn lines() -> MutexGuard<'static, Lines> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn join(lock: &str) -> Spot {
        Spot::join(Key::Named(lock.parse().unwrap()))
    }

    #[test]
    fn who_came_first_holds_and_the_next_one_is_woken_once() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let woken = || count.0.load(Ordering::Relaxed);
        let (one, two, three) = (join("line"), join("line"), join("line"));
        assert!(one.is_first() && !two.is_first() && join("another line").is_first());
        assert!(two.poll_first(&waker).is_pending() && three.poll_first(&waker).is_pending());
        drop(two);
        assert!(woken() == 0 && !three.is_first(), "the first one still holds");
        drop(one);
        assert!(woken() == 1 && three.poll_first(&waker).is_ready());
        let key = three.key.clone();
        drop(three);
        assert!(woken() == 1 && !lines().all.contains_key(&key), "nothing is left");
    }
}
