//! Proof of holding a lock.

use std::ops::Deref;
use std::time::Duration;

use lock_core::station::Leaving;
use lock_core::{BackendError, Fenced, Operation, WriteToken};
use lock_host::{Exclusive, Held, HoldError, Permits, Proof, Shared};

use crate::both;
use crate::driver::{Driver, ask, end};

/// Proof that the lock is held, until it is released, dropped or lost.
///
/// Before you read the protected resource, raise its fence to [`write_token`](Self::write_token). Send
/// [`fencing_token`](lock_host::Proof::fencing_token) with each write. Call [`check`](lock_host::Proof::check) before each step that
/// matters, and stop when a [`watch`](Self::watch) in another task or thread reports a loss. Dropping a guard releases the lock;
/// [`release`](Self::release) also reports the outcome.
///
/// # Cancel safety
/// Dropping a guard releases the lock in the background, in order, without waiting. If a task blocks the runtime, the keeper's thread
/// releases the lock a tenth of a second later, over a connection of its own. (It has none if a connection or pool was passed in without
/// `push`.)
///
/// If the process exits right after a drop, the release may not have been sent, and the lock stays held until its ttl has expired.
/// Before the process exits, await [`release`](Self::release) or [`Client::close`](crate::Client::close).
///
/// # Blocking
/// Dropping a guard blocks for at most an operation timeout.
#[both]
#[must_use = "the lock is released when the guard is dropped"]
#[derive(Debug)]
pub struct Guard<M = Exclusive>(pub(crate) Held<Driver, M>);

/// A guard of a [`ReadLock`](crate::ReadLock). Its fencing token is a lower bound on how fresh the data is; a resource must
/// not record it as the token of a write.
pub type ReadGuard = Guard<Shared>;

/// A guard of a [`Semaphore`](crate::Semaphore).
pub type PermitGuard = Guard<Permits>;

impl<M> Deref for Guard<M> {
    type Target = Proof;

    fn deref(&self) -> &Proof {
        &self.0
    }
}

#[both]
impl<M> Guard<M> {
    /// Asks the store whether the lock is still held under this grant.
    ///
    /// # Errors
    /// `Lost` if it is not held any more, `Backend` if the store did not answer.
    ///
    /// # Cancel safety
    /// Changes nothing at the store; can be dropped at any point.
    ///
    /// # Blocking
    /// For at most an operation timeout.
    pub async fn verify(&self) -> Result<(), HoldError> {
        let hold_call = self.0.hold_call()?;
        let (context, lease, within) = (hold_call.context(), hold_call.lease(), hold_call.within());
        let (name, token) = (&lease.name, hold_call.noted_token());
        let fenced = ask(context, name, Operation::Fence, |store| store.fence(lease, within)).await?;
        if let Fenced::Acknowledged = fenced {
            return Ok(self.check()?);
        }
        if !hold_call.may_know_by_whom() {
            return Ok(hold_call.gone(None)?);
        }
        let look = Operation::Inspect;
        let by = ask(context, name, look, |store| store.revoked_by(name, token, within)).await;
        Ok(hold_call.gone(by.ok().flatten())?)
    }

    /// Renews the lease now instead of at the next regular renewal. After a hand-over from another client, little of the lease may be
    /// left.
    ///
    /// # Errors
    /// `Lost` if it is no longer held, `Backend` if the store did not renew it; the regular renewals continue.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have renewed the lease; it can be called again.
    ///
    /// # Blocking
    /// For at most an operation timeout.
    pub async fn renew(&self) -> Result<(), HoldError> {
        let hold_call = self.0.hold_call()?;
        let (name, leases, within) = (&hold_call.lease().name, hold_call.leases(), hold_call.within());
        let renewal = ask(hold_call.context(), name, Operation::Renew, |store| store.renew(leases, within));
        let answers = renewal.await?;
        Ok(hold_call.renewed(answers)?)
    }

    /// Releases the lock and waits for the store's answer. Success means that no loss was detected: a release that is
    /// repeated after a broken connection and finds nothing counts as done, even if the lock was broken meanwhile.
    ///
    /// # Errors
    /// `Lost` if the lock had already been lost, for instance to `max_hold`: part of the work may have been done without it.
    /// `Backend` if the store did not confirm the release; the client repeats it in the background until the lease
    /// ends.
    ///
    /// # Cancel safety
    /// The release is sent when the future is first polled; dropping the future only stops the waiting.
    ///
    /// # Blocking
    /// For at most an operation timeout.
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
    pub async fn release(self) -> Result<(), HoldError> {
        let ended = end(self.0.site(), Leaving::now(self.0.turn())).await;
        self.0.ended(ended)
    }
}

#[both]
impl Guard<Exclusive> {
    /// The token with which this holder raises a fence before it reads what the lock protects. Its number is that of
    /// [`fencing_token`](lock_host::Proof::fencing_token). A guard of a reader has no such token: if a reader raised a fence, it
    /// would shut out the other readers.
    pub fn write_token(&self) -> WriteToken {
        WriteToken::of_writer(self.fencing_token())
    }

    /// Releases the lock, but keeps it from all waiters for this time, for work that must not be repeated too soon. Success means that no
    /// loss was detected, and that the store keeps the lock.
    ///
    /// The store ends that time by itself, whatever happens to this client, and then hands the lock over. Only an operator can end it
    /// early, and nobody can extend it; a repeated release does not. If the store has not confirmed it, the lock may be free when its ttl has
    /// expired.
    ///
    /// # Errors
    /// Those of [`release`](Self::release), and `Unsupported` if the store cannot keep a lock (`redlock://`): then the guard is
    /// dropped, which releases the lock at once. To find out before, check the
    /// [`abilities`](lock_core::Capabilities::abilities) of the store. If an earlier change of the hold failed with an unknown
    /// outcome, the lock may be free at once.
    ///
    /// # Cancel safety
    /// As [`release`](Self::release).
    ///
    /// # Blocking
    /// For at most an operation timeout.
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
    pub async fn release_keeping(self, time: Duration) -> Result<(), HoldError> {
        let ended = end(self.0.site(), self.0.keeping(time)?).await;
        self.0.ended(ended)
    }

    /// Keeps the lock from all others for at least this time, counted from now, however this guard ends: by a release, a drop, a panic,
    /// or the end of its client. The last call counts; a time of zero cancels earlier calls. A lease that expires or is broken ends this time
    /// early, and so do [`downgrade`](Self::downgrade) and a ticket. After a crash, the lock is free when its ttl has expired. To cover
    /// crashes, acquire the lock with a `ttl` that is as long.
    ///
    /// # Errors
    /// `Unsupported` if the store cannot keep a released lock.
    pub fn keep_at_least(&self, time: Duration) -> Result<(), BackendError> {
        self.0.keep_at_least(time)
    }
}
