//! A lock that its holder can acquire again.

use lock_async::{Mutex, SharedGuard};
use lock_core::{AcquireError, Invalid};

use crate::errors::ReentrantError;
use crate::setters::mutex_setters;

/// A lock that its holder can acquire again. Made by [`Kit::reentrant`](super::Kit::reentrant).
///
/// In async code, neither a thread nor a task says which calls belong together: a task moves between threads, and spawns
/// others. So the guard says it. Pass it on to what needs the lock as well, and acquire with it:
/// [`acquire_under`](Self::acquire_under), or [`SharedGuard::again`]. All guards of a hold have the same fencing token, and
/// the last one releases the lock. An acquire without the guard of the outer hold waits for that hold to end.
///
/// # Examples
/// ```
/// # use lock_kit::nonblocking as leasehold;
/// # use lock_async::{Client, SharedGuard};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// use leasehold::Kit;
///
/// async fn pay(locks: &Client, outer: Option<&SharedGuard>) -> Result<(), Box<dyn std::error::Error>> {
///     let guard = locks.reentrant("order:7").acquire_under(outer).await?; // asks the store only if `outer` is None
///     // ... raise the fence to guard.write_token(), then read; pay, with guard.fencing_token()
///     Ok(guard.release().await?)
/// }
///
/// let guard = locks.reentrant("order:7").acquire().await?;
/// pay(&locks, Some(&guard)).await?;
/// guard.release().await?; // the last guard: only now the lock is free
/// pay(&locks, None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Reentrant(Mutex);

impl Reentrant {
    pub(super) fn new(mutex: Mutex) -> Self {
        Self(mutex)
    }

    mutex_setters!();

    fn each(self, change: impl Fn(Mutex) -> Mutex) -> Self {
        Self(change(self.0))
    }

    /// Waits for the lock, for a new hold.
    ///
    /// # Errors
    /// As [`Mutex::acquire`].
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`].
    pub async fn acquire(&self) -> Result<SharedGuard, AcquireError> {
        Ok(self.0.acquire().await?.share())
    }

    /// Takes the lock for a new hold if it is free; `None` if it is held.
    ///
    /// # Errors
    /// As [`Mutex::try_acquire`].
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<SharedGuard>, AcquireError> {
        Ok(self.0.try_acquire().await?.map(lock_async::Guard::share))
    }

    /// Acquires the lock again under the hold of `outer`, without asking the store; with `None`, as
    /// [`acquire`](Self::acquire).
    ///
    /// The options of the outer hold apply to the inner one.
    ///
    /// # Errors
    /// `Lost` if the outer hold was lost; `Invalid` if `outer` is a guard of another lock, or of another client; otherwise
    /// those of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`].
    pub async fn acquire_under(&self, outer: Option<&SharedGuard>) -> Result<SharedGuard, ReentrantError> {
        let Some(outer) = outer else { return Ok(self.acquire().await?) };
        if !self.0.is_held_by(outer) {
            return Err(self.mismatch(outer)?.into());
        }
        Ok(outer.again()?)
    }

    fn mismatch(&self, outer: &SharedGuard) -> Result<Invalid, Invalid> {
        let (_, name) = self.0.identity()?;
        let problem = if name == *outer.name() {
            "it was acquired through another client".to_owned()
        } else {
            format!("it is not for the lock \"{name}\"")
        };
        Ok(Invalid::new("outer guard of the lock", outer.name(), problem, "pass the guard of the outer hold, or None"))
    }
}
