//! A hold that several threads share.

use crate::guard::Guard;

lock_host::shared_guard! {
    [] []
    Guard;

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
    fn release;
}
