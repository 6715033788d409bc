//! Tasks and threads to wake when a latch may have changed, or the client is closed.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use lock_core::LockName;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How a facade wakes a task or a thread. A wake-up before the sleep ends that sleep at once.
pub trait Wake: Send + Sync + 'static {
    /// Ends the present or the next sleep.
    fn wake(&self);
}

/// All wake_registry of a client, by the latch that they wait for.
#[derive(Default)]
pub(crate) struct WakeRegistry(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    by_name: BTreeMap<(LockName, u64), Weak<dyn Wake>>,
    count: u64,
    phase: Phase,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    Closed,
}

/// The key of a waiter.
type Listed = (LockName, u64);

/// Tells waiters that its stations do not know of the end of a client.
#[derive(Clone)]
pub struct CloseSignal(Arc<WakeRegistry>);

/// One registered waiter. It is no longer woken when this is dropped.
pub struct WakeRegistration {
    wake_registry: Arc<WakeRegistry>,
    listed: Listed,
}

impl CloseSignal {
    pub(crate) fn of(wake_registry: &Arc<WakeRegistry>) -> Self {
        Self(Arc::clone(wake_registry))
    }

    /// Whether the client is closed.
    pub fn is_over(&self) -> bool {
        self.0.is_closed()
    }

    /// Registers a waiter: it is woken when the client is closed, and when a latch of this name may have changed.
    #[must_use = "nobody is woken once this is dropped"]
    pub fn wakes(&self, name: &LockName, whom: Weak<dyn Wake>) -> WakeRegistration {
        WakeRegistration { wake_registry: Arc::clone(&self.0), listed: self.0.add(name, whom) }
    }
}

impl WakeRegistration {
    /// Whether the client is closed.
    pub fn is_over(&self) -> bool {
        self.wake_registry.is_closed()
    }
}

impl Drop for WakeRegistration {
    fn drop(&mut self) {
        self.wake_registry.remove(&self.listed);
    }
}

impl fmt::Debug for CloseSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CloseSignal").field(&self.0.is_closed()).finish()
    }
}

impl fmt::Debug for WakeRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WakeRegistration").field(&self.listed).finish()
    }
}

impl WakeRegistry {
    /// Adds a waiter until it is removed.
    fn add(&self, name: &LockName, whom: Weak<dyn Wake>) -> Listed {
        let mut inner = self.lock();
        inner.count += 1;
        let listed = (name.clone(), inner.count);
        inner.by_name.insert(listed.clone(), whom);
        listed
    }

    fn remove(&self, listed: &Listed) {
        self.lock().by_name.remove(listed);
    }

    /// Wakes the waiters of a latch.
    pub(crate) fn wake(&self, name: &LockName) {
        let these = all_of(name);
        wake(self.lock().by_name.range(these).filter_map(|(_, whom)| whom.upgrade()).collect());
    }

    pub(crate) fn wake_all(&self) {
        wake(self.lock().by_name.values().filter_map(Weak::upgrade).collect());
    }

    /// Wakes all: they find the client closed.
    pub(crate) fn close(&self) {
        self.lock().phase = Phase::Closed;
        self.wake_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().phase == Phase::Closed
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn all_of(name: &LockName) -> RangeInclusive<Listed> {
    (name.clone(), 0)..=(name.clone(), u64::MAX)
}

/// Called outside of the mutex.
fn wake(these: Vec<Arc<dyn Wake>>) {
    these.into_iter().for_each(|waiter| waiter.wake());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Counter(AtomicU64);

    impl Wake for Counter {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_those_who_wait_for_the_latch_are_woken() {
        let (wake_registry, names) =
            (WakeRegistry::default(), ["a", "b"].map(|name| name.parse::<LockName>().unwrap()));
        let here: Vec<_> = names
            .iter()
            .map(|name| {
                let counter = Arc::new(Counter::default());
                let whom: Arc<dyn Wake> = Arc::<Counter>::clone(&counter);
                (wake_registry.add(name, Arc::downgrade(&whom)), counter)
            })
            .collect();
        let woken = || here.iter().map(|(_, counter)| counter.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        wake_registry.wake(&names[0]);
        assert_eq!(woken(), [1, 0]);
        wake_registry.wake_all();
        assert_eq!((woken(), wake_registry.is_closed()), (vec![2, 1], false));
        wake_registry.remove(&here[0].0);
        wake_registry.close();
        assert_eq!((woken(), wake_registry.is_closed()), (vec![2, 2], true));
    }
}
