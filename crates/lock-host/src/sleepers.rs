//! Those who sleep until a latch may have changed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use lock_core::LockName;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How a facade wakes a task or a thread. A wake-up before the sleep ends that sleep at once.
pub trait Wake: Send + Sync + 'static {
    /// Ends the present or the next sleep.
    fn wake(&self);
}

/// All sleepers of a client, by the latch that they wait for.
#[derive(Default)]
pub(crate) struct Sleepers(Mutex<Inner>);

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

/// Where a sleeper is listed.
pub(crate) type Listed = (LockName, u64);

impl Sleepers {
    /// Lists a sleeper until it is removed.
    pub(crate) fn add(&self, name: &LockName, whom: Weak<dyn Wake>) -> Listed {
        let mut inner = self.lock();
        inner.count += 1;
        let listed = (name.clone(), inner.count);
        inner.by_name.insert(listed.clone(), whom);
        listed
    }

    pub(crate) fn remove(&self, listed: &Listed) {
        self.lock().by_name.remove(listed);
    }

    /// Wakes those who wait for a latch.
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
    these.into_iter().for_each(|sleeper| sleeper.wake());
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
        let (sleepers, names) = (Sleepers::default(), ["a", "b"].map(|name| name.parse::<LockName>().unwrap()));
        let here: Vec<_> = names
            .iter()
            .map(|name| {
                let counter = Arc::new(Counter::default());
                let whom: Arc<dyn Wake> = Arc::<Counter>::clone(&counter);
                (sleepers.add(name, Arc::downgrade(&whom)), counter)
            })
            .collect();
        let woken = || here.iter().map(|(_, counter)| counter.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        sleepers.wake(&names[0]);
        assert_eq!(woken(), [1, 0]);
        sleepers.wake_all();
        assert_eq!((woken(), sleepers.is_closed()), (vec![2, 1], false));
        sleepers.remove(&here[0].0);
        sleepers.close();
        assert_eq!((woken(), sleepers.is_closed()), (vec![2, 2], true));
    }
}
