//! A lock by its name, and how to hold it.

use lock_core::{AcquireError, Busy, Refusal, Ticket};
use lock_host::{Asking, CancelToken, Held, WhileHeldError, counted};

use crate::driver::{Driver, verdict};
use crate::guard::{Guard, PermitGuard};
use crate::threads::Threads;

lock_host::kinds! {
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let catalog = client.rw_lock("catalog");
    /// let (one, two) = (catalog.read().acquire()?, catalog.read().acquire()?);
    /// assert!(catalog.write().try_acquire()?.is_none());
    /// one.release()?;
    /// let writer = two.try_upgrade()?; // the only reader; otherwise it stays one, in the error
    /// let reader = writer.downgrade()?; // no other writer gets in between
    /// reader.release()?;
    /// # Ok(())
    /// # }
    /// ```
    ReadLock

    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let gpus = client.semaphore("gpu", 4);
    /// let guard = gpus.acquire()?;
    /// println!("use GPU {}", guard.slot()); // 0 to 3, and nobody else has it
    /// let two = gpus.acquire_many(2)?;
    /// for (slot, token) in two.tokens() {
    ///     println!("GPU {slot} can refuse tokens below {token}");
    /// }
    /// assert!(gpus.try_acquire_many(2)?.is_none());
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
    /// # Blocking
    /// For as long as [`wait`](Self::wait) allows, plus at most two operation timeouts: one for a request that is under way
    /// at the end, one to release what the wait left at the store.
    pub fn acquire(&self) -> Result<Guard<M>, AcquireError> {
        if let Some(held) = self.0.join_at_once(Threads::hold) {
            return Ok(Guard(held));
        }
        let asking = self.0.ask()?;
        asking.waited(take_turn(&asking)).map(Guard)
    }

    /// Waits for the lock until another thread cancels the wait.
    ///
    /// A token that is already cancelled ends the call without a request to the store. If the lock was acquired before
    /// the token was cancelled, it stays acquired.
    ///
    /// # Errors
    /// `Cancelled` if the token was cancelled first, or those of [`acquire`](Self::acquire). A cancelled wait leaves nothing at the store.
    ///
    /// # Blocking
    /// As [`acquire`](Self::acquire), and for at most two operation timeouts after the token was cancelled. A wait without
    /// a request under way ends at once.
    ///
    /// # Examples
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
    /// let (lock, cancel) = (client.mutex("import"), shutdown.clone());
    /// let waiting = std::thread::spawn(move || lock.acquire_with(&cancel).map(drop));
    /// shutdown.cancel();
    /// assert_eq!(waiting.join().unwrap(), Err(AcquireError::Cancelled));
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_with(&self, cancel: &CancelToken) -> Result<Guard<M>, AcquireError> {
        let asking = self.0.ask()?.cancelled_by(cancel)?;
        asking.waited(take_turn(&asking)).map(Guard)
    }

    /// Takes the lock if it is free; `None` if it is held. [`try_acquire_or_holder`](Self::try_acquire_or_holder) also
    /// says who holds it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
    ///
    /// # Blocking
    /// For at most two operation timeouts.
    pub fn try_acquire(&self) -> Result<Option<Guard<M>>, AcquireError> {
        Ok(self.try_acquire_or_holder()?.ok())
    }

    /// Takes the lock if it is free, and otherwise says who holds it.
    ///
    /// The outer result is that of the store; the inner one says who has the lock: you, or the holder that [`Busy`] names.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Blocking
    /// For at most two operation timeouts.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let lock = client.mutex("import").why("nightly import");
    /// match lock.try_acquire_or_holder()? {
    ///     Ok(guard) => guard.release()?,
    ///     Err(busy) => println!("{busy}"), // the lock "import" is not free; ...
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_acquire_or_holder(&self) -> Result<Result<Guard<M>, Busy>, AcquireError> {
        if let Some(held) = self.0.join_at_once(Threads::hold) {
            return Ok(Ok(Guard(held)));
        }
        let asking = self.0.ask()?.at_once();
        asking.tried(take_turn(&asking).map(Guard))
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
    /// # Blocking
    /// As [`acquire`](Self::acquire).
    pub fn adopt(&self, ticket: &Ticket) -> Result<Guard<M>, AcquireError> {
        let asking = self.0.ask_for(ticket)?;
        asking.waited(take_turn(&asking)).map(Guard)
    }

    /// Waits for the lock, works while it is held, and releases it.
    ///
    /// A thread cannot be stopped from outside, so long work should call [`Guard::check`](lock_host::Proof::check)
    /// between its steps. A [`CancelToken`] cannot end the wait for the lock here: use
    /// [`acquire_with`](Self::acquire_with).
    ///
    /// # Errors
    /// `Acquire` if the lock was not acquired; `Lost` if it was lost before it was released, whatever the work
    /// returned. A release that the store does not confirm is not an error here: the work was done under the lock.
    ///
    /// # Blocking
    /// As [`acquire`](Self::acquire), then for as long as the work takes, then for an operation timeout.
    pub fn run_while_held<T>(&self, work: impl FnOnce(&Guard<M>) -> T) -> Result<T, WhileHeldError> {
        let guard = self.acquire()?;
        let done = work(&guard);
        counted(Ok(done), guard.release())
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
    /// # Blocking
    /// As [`run_while_held`](Self::run_while_held).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let lock = client.mutex("import");
    /// let read = lock.try_run_while_held(|_guard| {
    ///     let text = std::fs::read_to_string("/dev/null")?;
    ///     Ok::<_, Box<dyn std::error::Error>>(text.len())
    /// });
    /// assert_eq!(read?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_run_while_held<T, E: From<WhileHeldError>>(
        &self,
        work: impl FnOnce(&Guard<M>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_while_held(work)?
    }
}

/// Waits for a turn, for a guard of any kind.
fn take_turn<M>(asking: &Asking<'_, Driver, M>) -> Result<Held<Driver, M>, Refusal> {
    loop {
        let (turn, ()) = asking.join(Threads::begin);
        let verdict = verdict(turn.site(), turn.id());
        if let Some(held) = asking.held(turn, verdict) {
            return held;
        }
    }
}
