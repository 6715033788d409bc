//! A hold that several threads share.

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
    /// # Blocking
    /// As [`Guard::release`].
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let guard = client.mutex("import").acquire()?.share();
    /// let part = guard.clone();
    /// let thread = std::thread::spawn(move || {
    ///     // ... one half of the import
    ///     part.release()
    /// });
    /// // ... the other half
    /// guard.release()?;
    /// thread.join().expect("it does not panic")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn release(self) -> Result<(), ReleaseError> {
        self.last()?.map_or(Ok(()), Guard::release)
    }
}
