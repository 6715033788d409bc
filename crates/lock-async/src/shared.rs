//! A hold that several tasks share.

use crate::guard::Guard;

lock_host::shared_guard! {
    [async] [.await]
    Guard;

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
    async fn release;
}
