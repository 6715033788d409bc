//! How locks of all kinds are acquired.

use lock_core::{AcquireError, Refusal, Ticket, TryAcquireError};
use lock_host::{AcquireCall, Held};

use crate::both;
use crate::driver::{Driver, turn_result};
use crate::guard::Guard;
use crate::limit::ask_limit;
use crate::mutex::NamedLock;

#[both]
impl<M> NamedLock<M> {
    /// Waits for the lock.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option; `TimedOut` when the wait has expired; `Forgotten` if the store lost its
    /// data; `Backend` for errors that are permanent, or last for an operation timeout (with
    /// [`OnUnavailable::Wait`](lock_core::OnUnavailable::Wait), that outlast the wait); `Closed` if this client was closed;
    /// `Cancelled` if its [token](Self::cancelled_by) was cancelled first.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the wait. Its lease or place at the store is released in the background. That happens at once, or, if a
    /// request is in flight, when its answer comes, at most 100 ms after the request was made. If a task blocks the runtime, the keeper's
    /// thread sends the release 100 ms later (see [`Guard`](crate::Guard)). Anything that drops the future
    /// cancels the wait: `tokio::select!`, `tokio::time::timeout`, an aborted task, or the `run_until_cancelled` of a token.
    ///
    /// # Blocking
    /// For as long as [`wait`](Self::wait) allows, plus at most two operation timeouts: one for a request that is in flight
    /// at the end, one to release what the wait left at the store. A wait that is [cancelled](Self::cancelled_by) without a request
    /// in flight ends at once:
    ///
    /// ```
    /// # mod leasehold { pub use lock_core::AcquireError; pub use lock_blocking as blocking; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// # let _held = client.mutex("import").acquire()?;
    /// use leasehold::AcquireError;
    /// use leasehold::blocking::CancelToken;
    ///
    /// let shutdown = CancelToken::new();
    /// let lock = client.mutex("import").cancelled_by(&shutdown);
    /// let waiting = std::thread::spawn(move || lock.acquire().map(drop));
    /// shutdown.cancel();
    /// assert_eq!(waiting.join().unwrap(), Err(AcquireError::Cancelled));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire(&self) -> Result<Guard<M>, AcquireError> {
        let call = self.0.ask()?;
        call.waited(take_turn(&call).await).map(Guard)
    }

    /// Takes the lock if it is free; `None` if it is held. [`try_acquire_or_holder`](Self::try_acquire_or_holder) also
    /// names the holder.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Blocking
    /// For at most two operation timeouts.
    pub async fn try_acquire(&self) -> Result<Option<Guard<M>>, AcquireError> {
        TryAcquireError::unless_busy(self.try_acquire_or_holder().await)
    }

    /// Takes the lock if it is free, and otherwise names its holder.
    ///
    /// # Errors
    /// `Busy` names the holder of a lock that is not free, if it is known. `Failed` as [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Blocking
    /// For at most two operation timeouts.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// # use lock_core as leasehold;
    /// use leasehold::TryAcquireError;
    ///
    /// let lock = client.mutex("import").why("nightly import");
    /// match lock.try_acquire_or_holder().await {
    ///     Ok(guard) => guard.release().await?,
    ///     Err(TryAcquireError::Busy(busy)) => println!("{busy}"), // the lock "import" is not free; ...
    ///     Err(TryAcquireError::Failed(error)) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_acquire_or_holder(&self) -> Result<Guard<M>, TryAcquireError> {
        let call = self.0.ask()?.without_waiting();
        call.tried(take_turn(&call).await.map(Guard))
    }

    /// Adopts the lock of a ticket, from which another guard has been detached with [`Guard::detach`](crate::Guard::detach). The lock
    /// stays held in between, and its waiters keep their places.
    ///
    /// A ticket can be adopted once. The guard has a higher token than the one before. `ttl`, `max_hold` and
    /// `why` are those of this lock, and `max_hold` counts from now. The guard of a semaphore has as many permits as the ticket, with the
    /// same slots. If the ticket is for another limit that [was changed](lock_core::limit) to this one, it can be adopted too: the store is asked
    /// first. If the store fails, the request is repeated for as long as `acquire` would. It does not wait for other holders.
    ///
    /// # Errors
    /// `TicketOver` if the ticket was adopted already, if the lock was released or revoked, or if the ttl has expired; then nothing is
    /// acquired. `Invalid` for a ticket for something else, and `Backend` for one of another limit than is in use; the ticket can
    /// still be adopted. Otherwise as [`acquire`](Self::acquire). If the store did not say whether the ticket was adopted, the lock
    /// is being released.
    ///
    /// # Cancel safety
    /// Dropping the future gives the ticket up: if it was adopted already, the lock is released in the background.
    ///
    /// # Blocking
    /// As [`acquire`](Self::acquire).
    pub async fn adopt(&self, ticket: &Ticket) -> Result<Guard<M>, AcquireError> {
        let call = self.0.ask_for(ticket)?;
        if let Some(call) = self.0.read_limit_before_adopting(ticket)? {
            ask_limit(call).await?;
        }
        call.waited(take_turn(&call).await).map(Guard)
    }
}

/// Waits for a turn, for a guard of any kind.
#[both]
async fn take_turn<M>(call: &AcquireCall<'_, Driver, M>) -> Result<Held<Driver, M>, Refusal> {
    loop {
        let (joined, turn, _watch) = call.join();
        let result = turn_result(turn.site(), turn.id(), joined).await;
        if let Some(held) = call.held(turn, result) {
            return held;
        }
    }
}
