//! A mutex guard that notifies observers once the mutex is unlocked.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::pending_events::PendingEvents;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A mutex guard. When it is dropped, observers are notified of what happened meanwhile, after the mutex was unlocked.
pub struct NotifyingGuard<'a, T> {
    // The order matters: fields are dropped in the order of their declaration.
    inner: MutexGuard<'a, T>,
    after: NotifyOnDrop<'a>,
    mutex: &'a Mutex<T>,
}

/// Reports what happened when it is dropped.
struct NotifyOnDrop<'a>(Option<&'a PendingEvents>);

impl Drop for NotifyOnDrop<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(events) = self.0 {
            events.notify();
        }
    }
}

impl<'a, T> NotifyingGuard<'a, T> {
    pub(crate) fn lock(mutex: &'a Mutex<T>, events: Option<&'a PendingEvents>) -> Self {
        Self { inner: mutex.lock().unwrap_or_else(PoisonError::into_inner), after: NotifyOnDrop(events), mutex }
    }

    /// Unlocks the mutex and sleeps until it is woken, but for at most `nap`; then locks it again. If there is
    /// something to report to observers, it does that instead of sleeping.
    #[must_use]
    pub fn sleep(self, condvar: &Condvar, nap: Duration) -> Self {
        let Self { inner, after, mutex } = self;
        match after.0.filter(|events| !events.is_empty()) {
            Some(events) => {
                drop(inner);
                drop(after);
                Self::lock(mutex, Some(events))
            }
            None => {
                let inner = condvar.wait_timeout(inner, nap).unwrap_or_else(PoisonError::into_inner).0;
                Self { inner, after, mutex }
            }
        }
    }
}

impl<T> Deref for NotifyingGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for NotifyingGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::observer::Observer;
    use crate::pending_events::Observers;
    use crate::sync::Arc;
    use lock_core::station::Event;

    struct Sends(Mutex<std::sync::mpsc::Sender<&'static str>>, Arc<Mutex<()>>);

    impl Observer for Sends {
        fn observe(&self, event: &Event) {
            assert!(self.1.try_lock().is_ok(), "told while the mutex is locked");
            self.0.lock().unwrap().send(event.name()).unwrap();
        }
    }

    fn events(mutex: &Arc<Mutex<()>>) -> (PendingEvents, Receiver<&'static str>) {
        let (sender, told) = channel();
        let observers = Observers::new(vec![Arc::new(Sends(Mutex::new(sender), Arc::clone(mutex)))]).unwrap();
        (PendingEvents::new("a".parse().unwrap(), observers), told)
    }

    #[test]
    fn observers_are_told_once_the_mutex_is_unlocked() {
        let mutex = Arc::new(Mutex::new(()));
        let (events, told) = events(&mutex);
        let locked = NotifyingGuard::lock(&mutex, Some(&events));
        events.push(Event::store_available(Duration::ZERO));
        assert!(told.try_recv().is_err());
        drop(locked);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), ["store available"]);
    }

    /// Nobody wakes it, and nobody else unlocks the mutex.
    #[test]
    fn observers_are_told_before_anybody_sleeps() {
        let (mutex, condvar) = (Arc::new(Mutex::new(())), Condvar::new());
        let (events, told) = events(&mutex);
        let locked = NotifyingGuard::lock(&mutex, Some(&events));
        events.push(Event::store_available(Duration::ZERO));
        let locked = locked.sleep(&condvar, Duration::from_secs(1));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), ["store available"]);
        drop(locked.sleep(&condvar, Duration::from_millis(1)));
        assert!(told.try_recv().is_err());
    }
}
