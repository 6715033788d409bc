//! A lock by its name, and how to hold it.

use lock_core::Operation;
use lock_core::limit::{LimitError, Usage};
use lock_host::{Error, LimitCall, counted};

use crate::driver::{Driver, ask, verdict};
use crate::guard::{Guard, PermitGuard};

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
    /// println!("raise the fence to {}, then read again", writer.write_token());
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

    [] []

    /// # Blocking
    /// For as long as [`wait`](Self::wait) allows, plus at most two operation timeouts: one for a request that is under way
    /// at the end, one to release what the wait left at the store. A wait that is [cancelled](Self::cancelled_by) without a request
    /// under way ends at once.
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
    /// let lock = client.mutex("import").cancelled_by(&shutdown);
    /// let waiting = std::thread::spawn(move || lock.acquire().map(drop));
    /// shutdown.cancel();
    /// assert_eq!(waiting.join().unwrap(), Err(AcquireError::Cancelled));
    /// # Ok(())
    /// # }
    /// ```
    fn acquire;

    /// # Blocking
    /// For at most two operation timeouts.
    fn try_acquire;

    /// # Blocking
    /// For at most two operation timeouts.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// # use lock_core as leasehold;
    /// use leasehold::TryAcquireError;
    ///
    /// let lock = client.mutex("import").why("nightly import");
    /// match lock.try_acquire_or_holder() {
    ///     Ok(guard) => guard.release()?,
    ///     Err(TryAcquireError::Busy(busy)) => println!("{busy}"), // the lock "import" is not free; ...
    ///     Err(TryAcquireError::Failed(error)) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn try_acquire_or_holder;

    /// # Blocking
    /// As [`acquire`](Self::acquire).
    fn adopt;
}

impl<M> NamedLock<M> {
    /// Waits for the lock, works while it is held, and releases it.
    ///
    /// A thread cannot be stopped from outside, so long work should call [`Guard::check`](lock_host::Proof::check)
    /// between its steps.
    ///
    /// # Errors
    /// `Acquire` if the lock was not acquired; `Lost` if it was lost before it was released, whatever the work
    /// returned. A release that the store does not confirm is not an error here: the work was done under the lock.
    ///
    /// # Blocking
    /// As [`acquire`](Self::acquire), then for as long as the work takes, then for an operation timeout.
    pub fn run_while_held<T>(&self, work: impl FnOnce(&Guard<M>) -> T) -> Result<T, Error> {
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
    pub fn try_run_while_held<T, E: From<Error>>(&self, work: impl FnOnce(&Guard<M>) -> Result<T, E>) -> Result<T, E> {
        self.run_while_held(work)?
    }
}

lock_host::limits! {
    [] []

    /// # Blocking
    /// Until the store has answered one request; for at most an operation timeout.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let (old, new) = (client.semaphore("gpu", 4), client.semaphore("gpu", 8));
    /// let guard = old.acquire()?;
    /// new.set_limit(8)?;
    /// assert_eq!(old.available_permits()?, 7); // "4" now means 8
    /// # guard.release()?;
    /// # Ok(())
    /// # }
    /// ```
    fn set_limit;

    /// # Blocking
    /// As [`set_limit`](Self::set_limit).
    fn available_permits;

    /// # Blocking
    /// As [`set_limit`](Self::set_limit).
    fn limit;

    /// # Blocking
    /// As the same call for one permit.
    fn acquire_many;

    /// # Blocking
    /// As the same call for one permit.
    fn try_acquire_many;
}

/// Sends a request about a limit.
fn ask_limit(LimitCall { ports, within, request }: LimitCall<'_, Driver>) -> Result<Usage, LimitError> {
    let answer = ask(ports, &request.name, Operation::Limit, |store| store.limit(&request, within));
    Ok(answer.map_err(|error| error.with_name(&request.name))?)
}
