//! Proof of holding a lock.

use std::time::Duration;

use lock_core::Lost;
use lock_core::station::Leaving;
use lock_host::{NAP_MAX, ReleaseError, VerifyError};

use crate::driver::{Driver, change, end};

lock_host::guards! {
    [] []

    /// Proof that the lock is held, until it is released, dropped or lost.
    ///
    /// Hand [`fencing_token`](lock_host::Proof::fencing_token) to what the lock protects, call
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
}

impl<M> Guard<M> {
    /// Asks the store whether the lock is still held under this grant.
    ///
    /// # Errors
    /// `Lost` if it is not held any more, `Backend` if the store did not answer.
    ///
    /// # Blocking
    /// For at most an operation timeout.
    pub fn verify(&self) -> Result<(), VerifyError> {
        let inquiry = self.0.inquire()?;
        let answer = inquiry.driver().backend.fence(inquiry.lease(), inquiry.within())?;
        Ok(inquiry.fenced(&answer)?)
    }

    /// Renews the lease now instead of at the next regular renewal. A lease that another client handed over may have
    /// little time left.
    ///
    /// # Errors
    /// `Lost` if it is no longer held, `Backend` if the store did not renew it; the regular renewals continue.
    ///
    /// # Blocking
    /// For at most an operation timeout.
    pub fn renew(&self) -> Result<(), VerifyError> {
        let inquiry = self.0.inquire()?;
        let answers = inquiry.driver().backend.renew(inquiry.leases(), inquiry.within())?;
        Ok(inquiry.renewed(answers)?)
    }

    /// Waits until the hold is lost, and returns the reason. This is at the local deadline at the latest.
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

    /// Releases the lock and waits for the store's answer. Success means that the lock was held until now.
    ///
    /// # Errors
    /// `Lost` if the lock had already been lost, also to `max_hold`: part of the work may have been done without it.
    /// `Backend` if the store did not confirm the release; the client repeats it in the background until the lease
    /// ends.
    ///
    /// # Blocking
    /// For at most an operation timeout.
    ///
    /// # Examples
    /// ```
    /// # use lock_host as leasehold;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// use leasehold::ReleaseError;
    ///
    /// let guard = client.mutex("invoice:42").acquire()?;
    /// match guard.release() {
    ///     Ok(()) => println!("the lock was held until now"),
    ///     Err(ReleaseError::Lost(lost)) => return Err(lost.into()), // the work does not count
    ///     Err(error) => println!("the lock was held, but may not be free yet: {error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn release(self) -> Result<(), ReleaseError> {
        if let Some(released) = self.0.release_at_once() {
            return released;
        }
        self.0.ended(end(self.0.site(), Leaving::now(self.0.turn())))
    }
}

impl Guard {
    /// Releases the lock, but lets nobody have it for this time: for what must not happen again so soon. Success means that the
    /// lock was held until now, and that the store keeps it.
    ///
    /// The store ends that time by itself, whatever happens to this client, and then hands the lock over. Waiters of this
    /// client wait as well. Nobody can renew or end it early, except an operator. A time that the store has not confirmed may
    /// be missed: the lock is then free when its ttl is over.
    ///
    /// # Errors
    /// Those of [`release`](Self::release), and `Unsupported` if the store cannot keep a lock (`redlock://`): then the guard is
    /// dropped, which releases the lock at once. To find out before, look at the
    /// [`abilities`](lock_core::Capabilities::abilities) of the store. If an earlier change of the hold failed with an unknown
    /// outcome, the lock may be free at once.
    ///
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
    pub fn release_keeping(self, time: Duration) -> Result<(), ReleaseError> {
        self.0.ended(end(self.0.site(), self.0.keeping(time)?))
    }
}
