//! Work under a lock.

use lock_host::{Error, counted};

use crate::both;
use crate::guard::Guard;
use crate::lost::until_lost;
use crate::mutex::NamedLock;

#[both]
impl<M> NamedLock<M> {
    /// Acquires the lock, runs the work while it is held, and releases it.
    ///
    /// # Errors
    /// `Acquire` if the lock was not acquired; `Lost` if it was lost before it was released, whatever the work
    /// returned. A release that the store does not confirm is not an error here: the work was done under the lock.
    ///
    /// # Cancel safety
    /// The work is stopped (dropped at its next await point) when the lock is lost. Dropping the future drops the
    /// work and releases the lock in the background.
    ///
    /// # Blocking
    /// As [`acquire`](Self::acquire), then for as long as the work takes, then for an operation timeout. A thread cannot be
    /// stopped from outside, so long work should call [`Guard::check`](lock_host::Proof::check) between its steps.
    pub async fn run_while_held<T>(&self, work: impl AsyncFnOnce(&Guard<M>) -> T) -> Result<T, Error> {
        let guard = self.acquire().await?;
        let done = until_lost(&guard, work).await;
        counted(done, guard.release().await)
    }

    /// As [`run_while_held`](Self::run_while_held), for work that can fail. Errors of the lock are converted to the work's error type.
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
    /// # Blocking
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
