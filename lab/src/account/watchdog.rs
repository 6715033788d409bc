//! A thread that renews a naive lock, without looking at its owner.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::cues::AT_MOST;
use super::mishap::{Before, Mishap};
use crate::shared::failure::Failure;
use crate::shared::raw::Raw;

/// Renews a lock until it is stopped.
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Failure>>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

/// What it has seen. Locked during each renewal.
#[derive(Debug, Default)]
struct Seen {
    renewals: u64,
    wrong_renewals: u64,
    gone: bool,
    stopped: bool,
}

impl Watchdog {
    /// Renews the lock of this worker three times per expiry.
    pub(crate) fn start(mut raw: Box<dyn Raw>, key: &str, me: u64, expiry: Duration) -> Self {
        let shared: Arc<Shared> = Arc::default();
        let (watched, key) = (shared.clone(), key.to_owned());
        let thread = thread::spawn(move || {
            let mut seen = watched.lock();
            loop {
                seen = watched.wait(seen, expiry / 3, |seen| seen.stopped);
                if seen.stopped {
                    return Ok(());
                }
                // The number is only counted here. The watchdog does not look at it.
                match raw.renew(&key, expiry)? {
                    None => seen.gone = true,
                    Some(owner) => seen.wrong_renewals += u64::from(owner != me),
                }
                seen.renewals += 1;
                watched.changed.notify_all();
            }
        });
        Self { shared, thread }
    }

    /// Whether the store has confirmed each renewal.
    pub(crate) fn is_content(&self) -> bool {
        !self.shared.lock().gone
    }

    /// Strikes between two renewals if this is the point, and then waits for the next renewal.
    pub(crate) fn strike(&self, mishap: &mut Mishap) -> Result<(), Failure> {
        let seen = self.shared.lock();
        if mishap.strike(Before::Check)? {
            let before = seen.renewals;
            drop(self.shared.wait(seen, AT_MOST, |seen| seen.renewals > before));
        }
        Ok(())
    }

    /// Stops it; says how many times it renewed the lock of another worker.
    pub(crate) fn stop(self) -> Result<u64, Failure> {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(Failure::system("a watchdog failed", "its thread panicked")))?;
        Ok(self.shared.lock().wrong_renewals)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is so, or until this time has passed.
    fn wait<'a>(
        &self,
        seen: MutexGuard<'a, Seen>,
        at_most: Duration,
        is_so: impl Fn(&Seen) -> bool,
    ) -> MutexGuard<'a, Seen> {
        let waited = self.changed.wait_timeout_while(seen, at_most, |seen| !is_so(seen));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
