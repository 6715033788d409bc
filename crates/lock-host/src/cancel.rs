//! Cancelling waits from another thread or task.

use std::collections::HashMap;
use std::fmt;
use std::mem;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cancels waits for locks from another thread or task. It ends waits only, not work under a lock. It cannot be reset. Clones cancel
/// the same waits.
///
/// One token may cancel any number of waits, also of several locks and clients.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    progress: Progress,
    last_watch: u64,
    /// The end of each wait.
    watches: HashMap<u64, Box<dyn FnOnce() + Send>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Open,
    Cancelled,
}

impl CancelToken {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends all waits that have this token, and all that will get it. Does not wait until they have ended.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.progress = Progress::Cancelled;
        let watches = mem::take(&mut state.watches);
        drop(state);
        watches.into_values().for_each(|end| end());
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state().progress == Progress::Cancelled
    }

    /// Calls `end` when the token is cancelled, or now if it already is, unless the watch is dropped first.
    #[doc(hidden)]
    pub fn watch(&self, end: impl FnOnce() + Send + 'static) -> Watch {
        let mut state = self.state();
        state.last_watch += 1;
        let id = state.last_watch;
        if state.progress == Progress::Cancelled {
            drop(state);
            end();
        } else {
            state.watches.insert(id, Box::new(end));
        }
        Watch { token: self.clone(), id }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two tokens are equal if they are clones of each other.
impl PartialEq for CancelToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CancelToken {}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

/// A wait that a token may end. Dropping it stops watching.
#[doc(hidden)]
#[must_use = "dropping it stops watching"]
pub struct Watch {
    token: CancelToken,
    id: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let end = self.token.state().watches.remove(&self.id);
        drop(end);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_token_ends_each_wait_once_and_none_that_is_over() {
        let (token, ended) = (CancelToken::new(), Arc::new(AtomicU32::new(0)));
        let watch = |amount| {
            let ended = Arc::clone(&ended);
            token.watch(move || _ = ended.fetch_add(amount, Ordering::SeqCst))
        };
        let (one, other) = (watch(1), watch(10));
        drop(other);
        assert!(!token.is_cancelled());
        token.clone().cancel();
        token.cancel();
        assert_eq!((token.is_cancelled(), ended.load(Ordering::SeqCst)), (true, 1));
        let late = watch(100);
        drop((one, late));
        assert_eq!(ended.load(Ordering::SeqCst), 101, "a wait that begins too late ends at once");
        assert!(token.state().watches.is_empty());
    }
}
