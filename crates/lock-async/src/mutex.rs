//! A lock by its name, and how to hold it.

use lock_core::{AcquireError, Busy, Refusal, Ticket};
use lock_host::{Asking, Held, WhileHeldError, counted};

use crate::driver::{Driver, answer};
use crate::guard::{Guard, PermitGuard};
use crate::tasks::Tasks;

lock_host::kinds! {
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let catalog = client.rw_lock("catalog");
    /// let (one, two) = (catalog.read().acquire().await?, catalog.read().acquire().await?);
    /// assert!(catalog.write().try_acquire().await?.is_none());
    /// one.release().await?;
    /// let writer = two.try_upgrade().await?; // the only reader; otherwise it stays one, in the error
    /// let reader = writer.downgrade().await?; // no other writer gets in between
    /// reader.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ReadLock

    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let gpus = client.semaphore("gpu", 4);
    /// let guard = gpus.acquire().await?;
    /// println!("use GPU {}", guard.slot()); // 0 to 3, and nobody else has it
    /// let two = gpus.acquire_many(2).await?;
    /// for (slot, token) in two.tokens() {
    ///     println!("GPU {slot} can refuse tokens below {token}");
    /// }
    /// assert!(gpus.try_acquire_many(2).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    Semaphore
}

impl<M> NamedLock<M> {
    /// Waits for the lock.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option; `TimedOut` when the wait is over; `Forgotten` if the store lost its
    /// memory; `Backend` for errors that are permanent, or last for an operation timeout (with
    /// [`OnUnavailable::Wait`](lock_core::OnUnavailable::Wait), that outlast the wait); `Closed` if this client was closed.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the wait. Its lease or place at the store is released in the background, at once if
    /// the store answers. Anything that drops the future cancels the wait: `tokio::select!`, `tokio::time::timeout`, an
    /// aborted task, or the `run_until_cancelled` of a token.
    pub async fn acquire(&self) -> Result<Guard<M>, AcquireError> {
        if let Some(held) = self.0.join_at_once(Tasks::hold) {
            return Ok(Guard(held));
        }
        let asking = self.0.ask()?;
        asking.waited(take_turn(&asking).await).map(Guard)
    }

    /// Takes the lock if it is free; `None` if it is held. [`try_acquire_or_holder`](Self::try_acquire_or_holder) also
    /// says who holds it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Guard<M>>, AcquireError> {
        Ok(self.try_acquire_or_holder().await?.ok())
    }

    /// Takes the lock if it is free, and otherwise says who holds it.
    ///
    /// The outer result is that of the store; the inner one says who has the lock: you, or the holder that [`Busy`] names.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let lock = client.mutex("import").why("nightly import");
    /// match lock.try_acquire_or_holder().await? {
    ///     Ok(guard) => guard.release().await?,
    ///     Err(busy) => println!("{busy}"), // the lock "import" is not free; ...
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_acquire_or_holder(&self) -> Result<Result<Guard<M>, Busy>, AcquireError> {
        if let Some(held) = self.0.join_at_once(Tasks::hold) {
            return Ok(Ok(Guard(held)));
        }
        let asking = self.0.ask()?.at_once();
        asking.tried(take_turn(&asking).await.map(Guard))
    }

    /// Goes on with the lock of a ticket, which another guard has let go of with [`Guard::detach`](crate::Guard::detach). The lock
    /// stays held in between, and those who wait for it keep their places.
    ///
    /// The first one to adopt a ticket has the lock. The guard has a higher token than the one before. `ttl`, `max_hold` and
    /// `why` are those of this lock, and `max_hold` counts from now. Of a semaphore, it has as many permits as the ticket, with the
    /// same slots. If the store fails, this asks again for as long as `acquire` does. It never waits for another
    /// holder.
    ///
    /// # Errors
    /// `TicketOver` if the ticket was adopted already, if the lock was released or revoked, or if the ttl is over; then nothing is
    /// acquired. `Invalid` for a ticket for something else; otherwise as [`acquire`](Self::acquire). If the store did not say
    /// whether the ticket was adopted, the lock is being released.
    ///
    /// # Cancel safety
    /// Dropping the future gives the ticket up: if it was adopted already, the lock is released in the background.
    pub async fn adopt(&self, ticket: &Ticket) -> Result<Guard<M>, AcquireError> {
        let asking = self.0.ask_for(ticket)?;
        asking.waited(take_turn(&asking).await).map(Guard)
    }

    /// Waits for the lock, works while it is held, and releases it.
    ///
    /// The work is stopped (dropped at its next await point) when the lock is lost.
    ///
    /// # Errors
    /// `Acquire` if the lock was not acquired; `Lost` if it was lost before it was released, whatever the work
    /// returned. A release that the store does not confirm is not an error here: the work was done under the lock.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases the lock in the background.
    pub async fn run_while_held<T>(&self, work: impl AsyncFnOnce(&Guard<M>) -> T) -> Result<T, WhileHeldError> {
        let guard = self.acquire().await?;
        let done = tokio::select! {
            biased;
            lost = guard.lost() => Err(lost),
            done = work(&guard) => Ok(done),
        };
        counted(done, guard.release().await)
    }

    /// The same for work that can fail. Errors of the lock are converted to the work's error type.
    ///
    /// An error of the lock takes precedence: if the lock was lost, the work may have failed for that reason. If the
    /// work's error type has no such conversion, use [`run_while_held`](Self::run_while_held), which returns the work's
    /// result inside its own.
    ///
    /// # Errors
    /// Those of [`run_while_held`](Self::run_while_held), and those of the work.
    ///
    /// # Cancel safety
    /// As [`run_while_held`](Self::run_while_held).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let lock = client.mutex("import");
    /// let read = lock.try_run_while_held(async |_guard| {
    ///     let text = std::fs::read_to_string("/dev/null")?;
    ///     Ok::<_, Box<dyn std::error::Error>>(text.len())
    /// });
    /// assert_eq!(read.await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_run_while_held<T, E: From<WhileHeldError>>(
        &self,
        work: impl AsyncFnOnce(&Guard<M>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_while_held(work).await?
    }
}

/// Waits for a turn, for a guard of any kind.
async fn take_turn<M>(asking: &Asking<'_, Driver, M>) -> Result<Held<Driver, M>, Refusal> {
    loop {
        let (turn, verdict) = asking.join(Tasks::begin);
        let verdict = answer(turn.site(), turn.id(), verdict).await;
        if let Some(held) = asking.held(turn, verdict.unwrap_or(Err(Refusal::Error(AcquireError::Closed)))) {
            return held;
        }
    }
}
