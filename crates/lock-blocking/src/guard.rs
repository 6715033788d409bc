//! Proof of holding a lock.

use std::time::Duration;

use lock_core::Lost;
use lock_host::NAP_MAX;

use crate::driver::{Driver, ask, change, end};

lock_host::guards! {
    [] []

    /// Proof that the lock is held, until it is released, dropped or lost.
    ///
    /// Raise the fence of what the lock protects to [`write_token`](Self::write_token) before you read there, hand it
    /// [`fencing_token`](lock_host::Proof::fencing_token) with each write, call
    /// [`check`](lock_host::Proof::check) before each step that matters, and stop when [`watch`](Self::watch) tells another
    /// thread of a loss.
    /// Dropping a guard releases the lock, and blocks for at most an operation timeout; [`release`](Self::release) does the
    /// same and reports the outcome.
    struct Guard;

    /// # Blocking
    /// Until the store has answered, or the hold has ended.
    fn change;

    /// # Blocking
    /// For at most an operation timeout.
    ///
    /// # Examples
    /// ```
    /// # use lock_core as leasehold;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// use leasehold::Ticket;
    ///
    /// let guard = client.mutex("upload:7").acquire()?;
    /// let text = guard.detach()?.expose(); // keep it as secret as a password
    ///
    /// // In another request, perhaps in another process:
    /// let ticket: Ticket = text.parse()?;
    /// let guard = client.mutex("upload:7").adopt(&ticket)?;
    /// guard.release()?;
    /// # Ok(())
    /// # }
    /// ```
    fn detach;

    /// # Blocking
    /// For at most an operation timeout.
    fn verify;

    /// # Blocking
    /// For at most an operation timeout.
    fn renew;

    /// # Blocking
    /// For at most an operation timeout.
    ///
    /// # Examples
    /// ```
    /// # use lock_host as leasehold;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// use leasehold::HoldError;
    ///
    /// let guard = client.mutex("invoice:42").acquire()?;
    /// match guard.release() {
    ///     Ok(()) => println!("no loss was detected"),
    ///     Err(HoldError::Lost(lost)) => return Err(lost.into()), // the work does not count
    ///     Err(error) => println!("the lock was held, but may not be free yet: {error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn release;

    /// # Blocking
    /// For at most an operation timeout.
    ///
    /// # Examples
    /// ```
    /// # use lock_host as leasehold;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// use std::time::Duration;
    ///
    /// // A machine whose clock is late comes too late: the report was sent.
    /// if let Some(guard) = locks.mutex("report:2026-11-22").try_acquire()? {
    ///     println!("send the report");
    ///     guard.release_keeping(Duration::from_secs(600))?;
    /// }
    /// assert!(locks.mutex("report:2026-11-22").try_acquire()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    fn release_keeping;
}

impl<M> Guard<M> {
    /// Waits until the hold is lost, and returns the reason. This is at the local deadline, or up to a second after the machine
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
