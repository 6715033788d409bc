//! A hold that several tasks or threads share.

use std::ops::Deref;
use std::sync::Arc;

use lock_core::Lost;
use lock_host::{Exclusive, HoldError};

use crate::both;
use crate::guard::Guard;

/// A guard with clones: the lock is held until the last of them is dropped or released.
///
/// Made by [`Guard::share`], and used like the [`Guard`]. All clones have the same fencing token, so the protected resource cannot distinguish them.
///
/// A clone that waits in [`lost`](Guard::lost) also keeps the lock held. A [`watch`](Guard::watch) does not: it ends with the last
/// clone.
///
/// It has no `detach`, because other clones would continue to work under a lock that another process has adopted. Detach the
/// guard instead of sharing it.
#[must_use = "the lock is released when the last clone is dropped"]
#[derive(Debug)]
pub struct SharedGuard<M = Exclusive>(Arc<Guard<M>>);

impl<M> Guard<M> {
    /// Makes a guard that can be cloned, for instance to give one to each of several tasks or threads.
    pub fn share(self) -> SharedGuard<M> {
        SharedGuard(Arc::new(self))
    }
}

// Not derived: the clone of a guard needs no clone of its marker.
impl<M> Clone for SharedGuard<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[both]
impl<M> SharedGuard<M> {
    /// Acquires the lock again, for another part of the work: a clone of this guard, if the lock is
    /// still held. Local and cheap; no request is sent.
    ///
    /// # Errors
    /// `Lost`, with the reason.
    pub fn again(&self) -> Result<Self, Lost> {
        self.check().map(|()| self.clone())
    }

    /// Gives up this clone. The last clone releases the lock and waits for the store's answer. Success means that no
    /// loss was detected. While other clones remain, the lock stays held, and nothing is sent to the store.
    ///
    /// # Errors
    /// `Lost` if the lock had already been lost. `Backend` from the last clone, as in [`Guard::release`].
    ///
    /// # Cancel safety
    /// As [`Guard::release`].
    ///
    /// # Blocking
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
    /// // ... one half of the import, in another task or thread
    /// part.release().await?;
    /// // ... the other half, under the same lock
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(self) -> Result<(), HoldError> {
        match self.last()? {
            Some(guard) => guard.release().await,
            None => Ok(()),
        }
    }

    /// The guard, if this is the last clone of it. A clone before the last one only tells whether the lock is held.
    fn last(self) -> Result<Option<Guard<M>>, Lost> {
        let checked = self.check();
        match Arc::into_inner(self.0) {
            Some(guard) => Ok(Some(guard)),
            None => checked.map(|()| None),
        }
    }
}

impl<M> Deref for SharedGuard<M> {
    type Target = Guard<M>;

    fn deref(&self) -> &Guard<M> {
        &self.0
    }
}
