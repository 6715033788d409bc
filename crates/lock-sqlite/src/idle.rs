//! Where a store waits while no thread serves it.
//!
//! What this process has open of files that were removed keeps it from opening the new ones (see [`crate::together`]). An idle
//! connection would prevent that forever, because nobody uses it. So the connection that needs the new files closes the idle ones.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

static PLACES: Mutex<Vec<Weak<dyn Place>>> = Mutex::new(Vec::new());

/// What has files open.
pub(crate) trait Opened: Send + 'static {
    /// Closes the files if they were removed or replaced.
    fn close_outdated(&mut self);
}

/// A place for a store. It is empty while a thread serves.
pub(crate) struct Idle<S>(Arc<Mutex<Option<S>>>);

impl<S: Opened> Idle<S> {
    pub(crate) fn new(store: Option<S>) -> Self {
        let place = Arc::new(Mutex::new(store));
        let weak: Weak<Mutex<Option<S>>> = Arc::downgrade(&place);
        let mut places = lock(&PLACES);
        places.retain(|place| place.strong_count() > 0);
        places.push(weak);
        Self(place)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<S>> {
        lock(&self.0)
    }

    pub(crate) fn take(&self) -> Option<S> {
        self.lock().take()
    }
}

impl<S> Drop for Idle<S> {
    /// Closes the files at once: another thread may look at the place just now, and would close them later.
    fn drop(&mut self) {
        let store = lock(&self.0).take();
        drop(store);
    }
}

impl<S> fmt::Debug for Idle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle").finish_non_exhaustive()
    }
}

/// Closes what the idle stores of this process have open of files that were removed or replaced.
pub(crate) fn close_outdated() {
    let places: Vec<_> = lock(&PLACES).iter().filter_map(Weak::upgrade).collect();
    places.iter().for_each(|place| place.close_outdated());
}

trait Place: Send + Sync {
    fn close_outdated(&self);
}

impl<S: Opened> Place for Mutex<Option<S>> {
    fn close_outdated(&self) {
        let mut store = match self.try_lock() {
            Ok(store) => store,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A thread takes it, and will notice by itself.
            Err(TryLockError::WouldBlock) => return,
        };
        if let Some(store) = &mut *store {
            store.close_outdated();
        }
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Files(mpsc::Sender<()>);

    impl Opened for Files {
        fn close_outdated(&mut self) {}
    }

    impl Drop for Files {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn files_are_closed_with_their_place_while_another_thread_looks_at_it() {
        let (closed, is_closed) = mpsc::channel();
        let place = Idle::new(Some(Files(closed)));
        let looking = Arc::clone(&place.0);
        drop(place);
        is_closed.try_recv().unwrap();
        drop(looking);
    }
}
