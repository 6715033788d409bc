//! How a guard becomes another one: a ticket, a reader, a writer, or fewer permits.

use lock_core::{Mode, Ticket};
use lock_host::{ChangeError, Exclusive, Permits, Shared};

use crate::both;
use crate::driver::change;
use crate::guard::{Guard, ReadGuard};

#[both]
impl<M> Guard<M> {
    /// Detaches the lock without releasing it, and returns a ticket with which another task, thread or process can
    /// [`adopt`](crate::NamedLock::adopt) it. The lease is renewed once before, so that nearly all of its ttl is
    /// left; a ticket that nobody adopts expires with it.
    ///
    /// Nobody else gets the lock in between. The adopting guard has a higher token, so a raised fence refuses late writes of this one.
    ///
    /// # Errors
    /// The guard as it was, with the reason: the hold was lost, the store failed or has no tickets, or other guards of
    /// this client read under the same lease.
    ///
    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    ///
    /// # Blocking
    /// For at most an operation timeout.
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
    pub async fn detach(self) -> Result<Ticket, ChangeError<Self>> {
        let renewed = match self.0.can_be_adopted() {
            Ok(()) => self.renew().await,
            Err(error) => Err(error),
        };
        self.0.detached(renewed, Self)
    }
}

#[both]
impl Guard<Exclusive> {
    /// Continues as a reader, in one step: no other writer gets in between, and the call does not wait for other holders. Other readers of
    /// an [`RwLock`](crate::RwLock) of this name are admitted then.
    ///
    /// # Errors
    /// The guard as it was, with the reason: the hold was lost, the store failed, or the store does not support it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    ///
    /// # Blocking
    /// Until the store has answered, or the hold has ended.
    pub async fn downgrade(self) -> Result<ReadGuard, ChangeError<Self>> {
        let result = change(&self.0, Mode::Shared).await;
        self.0.changed(result, Self).map(Guard)
    }
}

#[both]
impl Guard<Shared> {
    /// Continues as the writer, in one step, if nobody else reads. Overtakes waiting writers. No upgrade waits, because two waiting upgrades
    /// would deadlock.
    ///
    /// Then raise the fence to [`write_token`](Self::write_token), and read again the data that your writes depend on: until the fence is
    /// raised, an earlier writer that was paused may still write.
    ///
    /// # Errors
    /// The guard as it was, with the reason: there are other readers, the hold was lost, the store failed, or the store does not support
    /// it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    ///
    /// # Blocking
    /// Until the store has answered, or the hold has ended.
    pub async fn try_upgrade(self) -> Result<Guard, ChangeError<Self>> {
        let result = change(&self.0, Mode::Exclusive).await;
        self.0.changed(result, Self).map(Guard)
    }
}

#[both]
impl Guard<Permits> {
    /// Gives back `count` permits, those with the highest numbers, and keeps the others under new tokens. To give back all
    /// of them, [`release`](Self::release) the guard.
    ///
    /// # Errors
    /// The guard as it was, with the reason: `Invalid` for none or all of the permits; the hold was lost, the store failed, or
    /// the store does not support it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the guard, which releases the lock in the background.
    ///
    /// # Blocking
    /// Until the store has answered, or the hold has ended.
    pub async fn give_back(self, count: u32) -> Result<Self, ChangeError<Self>> {
        let result = match self.0.without(count) {
            Ok(mode) => change(&self.0, mode).await,
            Err(refusal) => Some(Err(refusal)),
        };
        self.0.changed(result, Self).map(Self)
    }
}
