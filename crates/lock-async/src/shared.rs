//! A hold that several tasks share.

use lock_host::ReleaseError;

use crate::guard::Guard;

lock_host::shared_guard!(Guard);

impl<M> SharedGuard<M> {
    /// Gives up this clone. The last clone releases the lock and waits for the store's answer. Success means that the
    /// lock was held until now. While other clones remain, the lock stays held, and nothing is sent to the store.
    ///
    /// # Errors
    /// `Lost` if the lock had already been lost. `Backend` from the last clone, as in [`Guard::release`].
    ///
    /// # Cancel safety
    /// As [`Guard::release`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let guard = client.mutex("import").acquire().await?.share();
    /// let part = guard.clone();
    /// let task = tokio::spawn(async move {
    ///     // ... one half of the import
    ///     part.release().await
    /// });
    /// // ... the other half
    /// guard.release().await?;
    /// task.await??;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(self) -> Result<(), ReleaseError> {
        match self.last()? {
            Some(guard) => guard.release().await,
            None => Ok(()),
        }
    }
}
