//! Proof of holding a lock.

use lock_core::Lost;

use crate::driver::{Driver, ask, change, end};

lock_host::guards! {
    [async] [.await]

    /// Proof that the lock is held, until it is released, dropped or lost.
    ///
    /// Raise the fence of what the lock protects to [`write_token`](Self::write_token) before you read there, hand it
    /// [`fencing_token`](lock_host::Proof::fencing_token) with each write, call
    /// [`check`](lock_host::Proof::check) before each step that matters, and stop when [`lost`](Self::lost) resolves.
    /// Dropping a guard releases the lock in the background, in order, without waiting; [`release`](Self::release) waits and
    /// reports the outcome. If the runtime does not get to it, because a task computes, the keeper's thread releases the lock a tenth
    /// of a second later, over a connection of its own (not with a connection or pool that was passed in without `push`).
    ///
    /// A process that exits right after a drop may not have sent the release, and the lock stays held until its ttl is over.
    /// Before the process exits, await [`release`](Self::release) or [`Client::close`](crate::Client::close).
    struct Guard;

    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    async fn change;

    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    ///
    /// # Examples
    /// ```
    /// # use lock_core as leasehold;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use leasehold::Ticket;
    ///
    /// let guard = client.mutex("upload:7").acquire().await?;
    /// let text = guard.detach().await?.expose(); // keep it as secret as a password
    ///
    /// // In another request, perhaps in another process:
    /// let ticket: Ticket = text.parse()?;
    /// let guard = client.mutex("upload:7").adopt(&ticket).await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    async fn detach;

    /// # Cancel safety
    /// Changes nothing at the store; can be dropped at any point.
    async fn verify;

    /// # Cancel safety
    /// A dropped call may or may not have renewed the lease; it can be called again.
    async fn renew;

    /// # Cancel safety
    /// The release is sent when the future is first polled; dropping the future only stops the waiting.
    ///
    /// # Examples
    /// ```
    /// # use lock_host as leasehold;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use leasehold::HoldError;
    ///
    /// let guard = client.mutex("invoice:42").acquire().await?;
    /// match guard.release().await {
    ///     Ok(()) => println!("no loss was detected"),
    ///     Err(HoldError::Lost(lost)) => return Err(lost.into()), // the work does not count
    ///     Err(error) => println!("the lock was held, but may not be free yet: {error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    async fn release;

    /// # Cancel safety
    /// As [`release`](Self::release).
    ///
    /// # Examples
    /// ```
    /// # use lock_host as leasehold;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use std::time::Duration;
    ///
    /// // A machine whose clock is late comes too late: the report was sent.
    /// if let Some(guard) = locks.mutex("report:2026-11-22").try_acquire().await? {
    ///     println!("send the report");
    ///     guard.release_keeping(Duration::from_secs(600)).await?;
    /// }
    /// assert!(locks.mutex("report:2026-11-22").try_acquire().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    async fn release_keeping;
}

impl<M> Guard<M> {
    /// Waits until the hold is lost, and returns the reason. This is at the local deadline, or up to a second after the machine
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
