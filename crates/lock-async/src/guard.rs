//! Proof of holding a lock.

use lock_core::{AcquireError, Lost, Mode};
use lock_host::{ChangeError, Exclusive, Held, Permits, ReleaseError, Shared, VerifyError};

use crate::driver::{Driver, change, end};

/// Proof that the lock is held, until it is released, dropped or lost.
///
/// Hand [`fencing_token`](lock_host::Proof::fencing_token) to what the lock protects, call
/// [`check`](lock_host::Proof::check) before each step that matters, and stop when [`lost`](Self::lost) resolves.
/// Dropping a guard releases the lock in the background, in order, without waiting; [`release`](Self::release) waits and
/// reports the outcome.
///
/// A process that exits right after a drop may not have sent the release, and the lock stays held until its ttl is over.
/// Before the process exits, await [`release`](Self::release) or [`Client::close`](crate::Client::close).
#[must_use = "the lock is released when the guard is dropped"]
#[derive(Debug)]
pub struct Guard<M = Exclusive>(pub(crate) Held<Driver, M>);

impl<M> Guard<M> {
    /// Asks the store whether the lock is still held under this grant.
    ///
    /// # Errors
    /// `Lost` if it is not held any more, `Backend` if the store did not answer.
    ///
    /// # Cancel safety
    /// Changes nothing at the store; can be dropped at any point.
    pub async fn verify(&self) -> Result<(), VerifyError> {
        let inquiry = self.0.inquire()?;
        let answer = inquiry.driver().backend.fence(inquiry.lease(), inquiry.within()).await?;
        Ok(inquiry.fenced(&answer)?)
    }

    /// Renews the lease now instead of at the next regular renewal. A lease that another client handed over may have
    /// little time left.
    ///
    /// # Errors
    /// `Lost` if it is no longer held, `Backend` if the store did not renew it; the regular renewals continue.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have renewed the lease; it can be called again.
    pub async fn renew(&self) -> Result<(), VerifyError> {
        let inquiry = self.0.inquire()?;
        let answers = inquiry.driver().backend.renew(inquiry.leases(), inquiry.within()).await?;
        Ok(inquiry.renewed(answers)?)
    }

    /// Waits until the hold is lost, and returns the reason. This is at the local deadline at the latest.
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

    /// Releases the lock and waits for the store's answer. Success means that the lock was held until now.
    ///
    /// # Errors
    /// `Lost` if the lock had already been lost, also to `max_hold`: part of the work may have been done without it.
    /// `Backend` if the store did not confirm the release; the client repeats it in the background until the lease
    /// ends.
    ///
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
    /// use leasehold::ReleaseError;
    ///
    /// let guard = client.mutex("invoice:42").acquire().await?;
    /// match guard.release().await {
    ///     Ok(()) => println!("the lock was held until now"),
    ///     Err(ReleaseError::Lost(lost)) => return Err(lost.into()), // the work does not count
    ///     Err(error) => println!("the lock was held, but may not be free yet: {error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(self) -> Result<(), ReleaseError> {
        let ended = end(self.0.site(), self.0.turn()).await;
        self.0.ended(ended)
    }
}

/// A guard of a [`ReadLock`](crate::ReadLock). Its fencing token says that what is read is not older than that; a resource must
/// not record it as the token of a write.
pub type ReadGuard = Guard<Shared>;

/// A guard of a [`Semaphore`](crate::Semaphore).
pub type PermitGuard = Guard<Permits>;

impl Guard<Exclusive> {
    /// Goes on as a reader, in one step: no other writer gets in between, and it never waits for anybody. Other readers of an
    /// [`RwLock`](crate::RwLock) of this name can then read as well.
    ///
    /// # Errors
    /// The guard as it was, with the reason: the hold was lost, or the store failed or cannot do it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    pub async fn downgrade(self) -> Result<ReadGuard, ChangeError<Self>> {
        let verdict = change(&self.0, Mode::Shared).await;
        self.0.changed(verdict, Self).map(Guard)
    }
}

impl Guard<Shared> {
    /// Goes on as the writer, in one step, if nobody else reads. It goes ahead of writers that wait. There is no upgrade that
    /// waits, because two of them would wait for each other.
    ///
    /// # Errors
    /// The guard as it was, with the reason: others read as well, the hold was lost, or the store failed or cannot do it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    pub async fn try_upgrade(self) -> Result<Guard, ChangeError<Self>> {
        let verdict = change(&self.0, Mode::Exclusive).await;
        self.0.changed(verdict, Self).map(Guard)
    }
}

impl Guard<Permits> {
    /// Gives back `count` permits, those with the highest numbers, and keeps the others under new tokens. To give back all of
    /// them, [`release`](Self::release) the guard.
    ///
    /// # Errors
    /// The guard as it was, with the reason: `Invalid` for none or all of the permits; the hold was lost, or the store failed
    /// or cannot do it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    pub async fn give_back(self, count: u32) -> Result<Self, ChangeError<Self>> {
        let mode = match self.0.without(count) {
            Ok(mode) => mode,
            Err(invalid) => {
                let reason = Box::new(AcquireError::from(invalid).into());
                return Err(ChangeError { guard: self, reason });
            }
        };
        let verdict = change(&self.0, mode).await;
        self.0.changed(verdict, Self).map(Self)
    }
}

lock_host::deref_guard!(Guard => lock_host::Proof);
