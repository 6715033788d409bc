//! A lock by its name, and how to hold it.

use lock_core::Operation;
use lock_core::limit::{LimitError, Usage};
use lock_host::{Error, LimitCall, counted};

use crate::driver::{Driver, ask, verdict};
use crate::guard::{Guard, PermitGuard};

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
    /// println!("raise the fence to {}, then read again", writer.write_token());
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

    [async] [.await]

    /// # Cancel safety
    /// Dropping the future gives up the wait. Its lease or place at the store is released in the background: at once, or if its
    /// request has no answer yet, when that comes, 100 ms after the request was made at the latest. If a task computes and keeps the
    /// runtime from it, the keeper's thread releases it 100 ms later (see [`Guard`](crate::Guard)). Anything that drops the future
    /// cancels the wait: `tokio::select!`, `tokio::time::timeout`, an aborted task, or the `run_until_cancelled` of a token.
    async fn acquire;

    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    async fn try_acquire;

    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
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
    async fn try_acquire_or_holder;

    /// # Cancel safety
    /// Dropping the future gives the ticket up: if it was adopted already, the lock is released in the background.
    async fn adopt;
}

impl<M> NamedLock<M> {
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
    pub async fn run_while_held<T>(&self, work: impl AsyncFnOnce(&Guard<M>) -> T) -> Result<T, Error> {
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
    pub async fn try_run_while_held<T, E: From<Error>>(
        &self,
        work: impl AsyncFnOnce(&Guard<M>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_while_held(work).await?
    }
}

lock_host::limits! {
    [async] [.await]

    /// # Cancel safety
    /// Can be dropped at any point: the limit may or may not have been changed. Setting it again is harmless.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let (old, new) = (client.semaphore("gpu", 4), client.semaphore("gpu", 8));
    /// let guard = old.acquire().await?;
    /// new.set_limit(8).await?;
    /// assert_eq!(old.available_permits().await?, 7); // "4" now means 8
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    async fn set_limit;

    /// # Cancel safety
    /// Changes nothing.
    async fn available_permits;

    /// # Cancel safety
    /// Changes nothing.
    async fn limit;

    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    async fn acquire_many;

    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    async fn try_acquire_many;
}

/// Sends a request about a limit.
async fn ask_limit(LimitCall { ports, within, request }: LimitCall<'_, Driver>) -> Result<Usage, LimitError> {
    let answer = ask(ports, &request.name, Operation::Limit, |store| store.limit(&request, within)).await;
    Ok(answer.map_err(|error| error.with_name(&request.name))?)
}
