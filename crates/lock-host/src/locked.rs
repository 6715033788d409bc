//! A mutex guard that tells the observers what happened, once the mutex is unlocked.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use crate::watch::News;

/// A mutex guard. When it is dropped, the observers are told what happened meanwhile, after the mutex was unlocked.
pub struct Telling<'a, T> {
    // The order matters: fields are dropped in the order of their declaration.
    inner: MutexGuard<'a, T>,
    after: Tell<'a>,
    mutex: &'a Mutex<T>,
}

/// Tells the news when it is dropped.
struct Tell<'a>(Option<&'a News>);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        if let Some(news) = self.0 {
            news.tell();
        }
    }
}

impl<'a, T> Telling<'a, T> {
    pub(crate) fn lock(mutex: &'a Mutex<T>, news: Option<&'a News>) -> Self {
        Self { inner: mutex.lock().unwrap_or_else(PoisonError::into_inner), after: Tell(news), mutex }
    }

    /// Unlocks the mutex and sleeps until it is woken, but for at most `nap`; then locks it again. May return sooner: if
    /// observers have something to be told, they are, and nobody sleeps.
    #[must_use]
    pub fn sleep(self, bell: &Condvar, nap: Duration) -> Self {
        let Self { inner, after, mutex } = self;
        match after.0.filter(|news| !news.is_empty()) {
            Some(news) => {
                drop(inner);
                drop(after);
                Self::lock(mutex, Some(news))
            }
            None => {
                let inner = bell.wait_timeout(inner, nap).unwrap_or_else(PoisonError::into_inner).0;
                Self { inner, after, mutex }
            }
        }
    }
}

impl<T> Deref for Telling<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Telling<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
