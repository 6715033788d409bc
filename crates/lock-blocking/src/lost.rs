//! Waiting for the loss of a hold, for threads.

use std::time::Duration;

use lock_core::Lost;
use lock_host::NAP_MAX;

use crate::driver::nap_until_ended;
use crate::guard::Guard;
use crate::loss::LossWatch;

impl<M> Guard<M> {
    /// Waits until the hold is lost, and returns the reason. It returns at the local deadline, or up to a second after the machine
    /// resumes from a suspend; [`check`](lock_host::Proof::check) is exact.
    ///
    /// This borrows the guard, which cannot be released meanwhile. To wait in another thread, use [`watch`](Self::watch).
    ///
    /// # Blocking
    /// For as long as the lock is held, so do not call it from the thread that does the work.
    pub fn lost(&self) -> Lost {
        loop {
            if let Some(lost) = self.lost_within(NAP_MAX) {
                return lost;
            }
        }
    }

    /// Waits until the hold is lost, but for at most `patience`.
    ///
    /// # Blocking
    /// For at most `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<Lost> {
        self.watch().lost_within(patience)
    }
}

impl LossWatch {
    /// Waits until the hold ends. `Some` if it was lost, at the local deadline or up to a second after a resume. `None` if its guard was
    /// dropped or released; [`release`](crate::Guard::release) then returns whether a loss was detected before.
    ///
    /// # Blocking
    /// For as long as the lock is held, and at most a second longer.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let guard = client.mutex("import").acquire()?;
    /// let watch = guard.watch();
    /// let watcher = std::thread::spawn(move || {
    ///     if let Some(lost) = watch.lost() {
    ///         eprintln!("{lost}"); // and stop the work
    ///     }
    /// });
    /// // ... the work
    /// guard.release()?;
    /// watcher.join().expect("it does not panic");
    /// # Ok(())
    /// # }
    /// ```
    pub fn lost(&self) -> Option<Lost> {
        self.lost_within(Duration::MAX)
    }

    /// Waits until the hold ends, but for at most `patience`. `Some` if it was lost. `None` if it was not, or not yet:
    /// [`has_ended`](Self::has_ended) tells which.
    ///
    /// # Blocking
    /// For at most `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<Lost> {
        let mut until = None;
        while let Some(site) = self.0.site() {
            let now = site.context().clock.now();
            let left = until.get_or_insert(now + patience).since(now);
            if left.is_zero() {
                break;
            }
            let Some(remaining) = self.0.remaining(&site) else { break };
            // Woken by the alarms, or by our own check if they are late.
            nap_until_ended(&site, self.0.turn(), left.min(remaining).min(NAP_MAX));
        }
        self.0.lost()
    }
}

/// Works to the end: nothing stops a thread.
#[expect(clippy::unnecessary_wraps, reason = "in async code, work is stopped")]
pub(crate) fn until_lost<T, M>(guard: &Guard<M>, work: impl FnOnce(&Guard<M>) -> T) -> Result<T, Lost> {
    Ok(work(guard))
}
