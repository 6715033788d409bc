//! The observers of a client, and what was not reported to them yet.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_core::{BackendError, LockName, Moment};

use crate::observer::{Occurrence, SharedObserver};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The observers of a client, and what was reported to them about its store.
pub(crate) struct Watch {
    observers: Vec<SharedObserver>,
    unavailable_since: Mutex<Option<Moment>>,
}

impl Watch {
    /// `None` if nobody observes.
    pub(crate) fn new(observers: Vec<SharedObserver>) -> Option<Arc<Self>> {
        (!observers.is_empty()).then(|| Arc::new(Self { observers, unavailable_since: Mutex::default() }))
    }

    fn tell(&self, occurrence: &Occurrence) {
        for observer in &self.observers {
            // It is called on the threads that renew leases and watch deadlines, which must continue.
            _ = catch_unwind(AssertUnwindSafe(|| observer.observe(occurrence)));
        }
    }

    /// What a request reveals about the store, if that is new. An error that is not transient reveals nothing.
    fn change(&self, now: Moment, error: Option<&BackendError>) -> Option<Occurrence> {
        let mut since = lock(&self.unavailable_since);
        match error {
            None => since.take().map(|since| Occurrence::StoreAvailable { after: now.since(since) }),
            Some(error) if error.kind().is_transient() && since.is_none() => {
                *since = Some(now);
                Some(Occurrence::StoreUnavailable { error: error.clone() })
            }
            Some(_) => None,
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("observers", &self.observers).finish_non_exhaustive()
    }
}

/// What happened at one lock and was not reported yet.
pub(crate) struct News {
    lock: LockName,
    watch: Arc<Watch>,
    untold: Mutex<Vec<Occurrence>>,
}

impl News {
    pub(crate) fn new(lock: LockName, watch: Arc<Watch>) -> Self {
        Self { lock, watch, untold: Mutex::default() }
    }

    /// The lock.
    pub(crate) fn lock(&self) -> LockName {
        self.lock.clone()
    }

    pub(crate) fn push(&self, occurrence: Occurrence) {
        lock(&self.untold).push(occurrence);
    }

    /// A request was answered, or failed.
    pub(crate) fn store_said(&self, now: Moment, error: Option<&BackendError>) {
        lock(&self.untold).extend(self.watch.change(now, error));
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.untold).is_empty()
    }

    /// Reports what was not reported yet, in order. No mutex is held meanwhile.
    #[inline(never)]
    pub(crate) fn tell(&self) {
        let untold = std::mem::take(&mut *lock(&self.untold));
        untold.iter().for_each(|occurrence| self.watch.tell(occurrence));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
