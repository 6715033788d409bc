//! A hold that several threads share.

use std::sync::Arc;

use lock_core::ReleaseError;

use crate::guard::Guard;

/// A guard with clones: the lock is held until the last of them is dropped or released.
///
/// Made by [`Guard::share`], and used like the [`Guard`]. All clones have the same fencing token, so the protected
/// resource cannot tell them apart.
#[must_use = "the lock is released when the last clone is dropped"]
#[derive(Clone, Debug)]
pub struct SharedGuard(Arc<Guard>);

impl Guard {
    /// Makes a guard that can be cloned, for instance to give one to each of several threads.
    pub fn share(self) -> SharedGuard {
        SharedGuard(Arc::new(self))
    }
}

impl SharedGuard {
    /// Gives up this clone. The last clone releases the lock and waits for the store's answer. Success means that the
    /// lock was held until now.
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
        let checked = self.check();
        match Arc::into_inner(self.0) {
            Some(guard) => guard.release(),
            None => Ok(checked?),
        }
    }
}

lock_host::deref_guard!(SharedGuard => Guard);
