//! Waiting for the loss of a hold, in async code.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use lock_core::Lost;
use lock_host::NAP_MAX;
use tokio::sync::futures::OwnedNotified;

use crate::guard::Guard;
use crate::loss::LossWatch;

impl<M> Guard<M> {
    /// Waits until the hold is lost, and returns the reason. It resolves at the local deadline, or up to a second after the machine
    /// resumes from a suspend; [`check`](lock_host::Proof::check) is exact.
    ///
    /// This borrows the guard, which cannot be released meanwhile. To wait in another task, use [`watch`](Self::watch).
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> Lost {
        match self.watch().lost().await {
            Some(lost) => lost,
            // Not while the guard is borrowed; a hold that is not lost does not resolve this.
            None => std::future::pending().await,
        }
    }
}

impl LossWatch {
    /// Waits until the hold ends. `Some` if it was lost, at the local deadline or up to a second after a resume. `None` if its guard was
    /// dropped or released; [`release`](crate::Guard::release) then returns whether a loss was detected before.
    /// The wait ends at most a second after the hold.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let guard = client.mutex("import").acquire().await?;
    /// let watch = guard.watch();
    /// let watcher = tokio::spawn(async move {
    ///     if let Some(lost) = watch.lost().await {
    ///         eprintln!("{lost}"); // and stop the work
    ///     }
    /// });
    /// // ... the work
    /// guard.release().await?;
    /// watcher.await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> Option<Lost> {
        while let Some((remaining, ended)) = self.next_end() {
            // Woken by the alarms, or by our own timer if they are late.
            _ = tokio::time::timeout(remaining.min(NAP_MAX), ended).await;
        }
        self.0.lost()
    }

    /// How much of the hold remains, and the next end of a hold of this lock; `None` if this one has ended.
    fn next_end(&self) -> Option<(Duration, OwnedNotified)> {
        let site = self.0.site()?;
        // Taken first, so that no end is missed.
        let ended = site.lock().waiters.turns.get_mut(self.0.turn())?.changed();
        Some((self.0.remaining(&site)?, ended))
    }
}

/// Works until the hold is lost. Work that awaits nothing is not stopped.
pub(crate) async fn until_lost<T, M>(guard: &Guard<M>, work: impl AsyncFnOnce(&Guard<M>) -> T) -> Result<T, Lost> {
    match select(pin!(guard.lost()), pin!(work(guard))).await {
        Either::Left((lost, _)) => Err(lost),
        Either::Right((done, _)) => Ok(done),
    }
}
