//! Locks of this process: one line for each lock, shared by all clients and both facades.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use lock_core::{AcquireError, BackendError, Location, LockName};
use lock_host::{Member, Wake, WakeRegistration};

static LINES: Mutex<Lines> = Mutex::new(Lines { last: 0, all: BTreeMap::new() });

struct Lines {
    last: u64,
    all: BTreeMap<Key, Line>,
}

/// Those who hold a lock or wait for it.
#[derive(Debug, Default)]
struct Line {
    /// In the order in which they came. The first one asks the store.
    places: BTreeMap<u64, Option<Waker>>,
    /// Who holds the lock.
    held_by: Option<u64>,
}

impl Line {
    /// Whose turn it is: that of the holder, or else of the first one.
    fn front(&self) -> Option<u64> {
        self.held_by.or_else(|| self.places.keys().next().copied())
    }
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
    client: WakeRegistration,
}

impl Place {
    /// Joins the line for this lock.
    pub(crate) fn join(lock: &Member) -> Self {
        let spot = Arc::new(Spot::join(lock.location.clone().map_or_else(|| Key::Named(lock.name.clone()), Key::At)));
        let whom: Arc<dyn Wake> = Arc::<Spot>::clone(&spot);
        let client = lock.close_signal.wakes(&lock.name, Arc::downgrade(&whom));
        Self { spot, client }
    }

    /// Whether it is its turn: nobody holds the lock, and nobody came before.
    pub(crate) fn is_first(&self) -> bool {
        self.spot.look(|line| line.front() == Some(self.spot.id))
    }

    /// Whether somebody else of this process holds the lock.
    pub(crate) fn is_held(&self) -> bool {
        self.spot.look(|line| line.held_by.is_some_and(|id| id != self.spot.id))
    }

    /// Takes the lock for this process, unless somebody else holds it.
    pub(crate) fn take(&self) -> bool {
        self.spot.look(|line| *line.held_by.get_or_insert(self.spot.id) == self.spot.id)
    }

    /// What a try at the store came to, unless that is an error and an earlier one of the line is to degrade first.
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
        lines.all.entry(key.clone()).or_default().places.insert(id, None);
        Self { key, id }
    }

    /// Looks at its line, or changes it.
    fn look<T>(&self, look: impl FnOnce(&mut Line) -> T) -> T
    where
        T: Default,
    {
        lines().all.get_mut(&self.key).map(look).unwrap_or_default()
    }

    /// Whether it is its turn. If not, the waker is woken once it is.
    fn poll_first(&self, waker: &Waker) -> Poll<()> {
        let mut lines = lines();
        let Some(line) = lines.all.get_mut(&self.key) else { return Poll::Ready(()) };
        if line.front() == Some(self.id) {
            return Poll::Ready(());
        }
        line.places.insert(self.id, Some(waker.clone()));
        Poll::Pending
    }

    /// Leaves the line. What is to be woken, if it is somebody else's turn now.
    fn leave(&self) -> Option<Waker> {
        let mut lines = lines();
        let line = lines.all.get_mut(&self.key)?;
        let was_first = line.front() == Some(self.id);
        line.places.remove(&self.id);
        line.held_by.take_if(|id| *id == self.id);
        if line.places.is_empty() {
            lines.all.remove(&self.key);
            return None;
        }
        line.places.values_mut().next().filter(|_| was_first).and_then(mem::take)
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
        let waker = lines().all.get(&self.key).and_then(|line| line.places.get(&self.id)?.clone());
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
        let is_first = |spot: &Spot| spot.look(|line| line.front() == Some(spot.id));
        assert!(is_first(&one) && !is_first(&two) && is_first(&join("another line")));
        assert!(two.poll_first(&waker).is_pending() && three.poll_first(&waker).is_pending());
        drop(two);
        assert!(woken() == 0 && !is_first(&three), "the first one still holds");
        drop(one);
        assert!(woken() == 1 && three.poll_first(&waker).is_ready());
        let key = three.key.clone();
        drop(three);
        assert!(woken() == 1 && !lines().all.contains_key(&key), "nothing is left");
    }
}
