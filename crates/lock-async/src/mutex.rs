//! A lock by its name, and how to hold it.

use std::time::Duration;

use lock_core::{Backend, BackendError, Invalid, LockName};
use lock_host::{ClientId, Exclusive, Lock, Member, Permits, Setting, Shared};

use crate::both;
use crate::driver::Driver;
use crate::guard::Guard;

/// A lock by its name, and how to hold it: a [`Mutex`], a [`ReadLock`] or a [`Semaphore`].
///
/// No request is sent before [`acquire`](Self::acquire) or another method that acquires, which also reports an invalid
/// name or option. It can be acquired any number of times.
#[derive(Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct NamedLock<M = Exclusive>(pub(crate) Lock<Driver, M>);

/// A lock with one holder at a time, and the write side of the [`RwLock`](crate::RwLock) of its name. Made by [`Client::mutex`](crate::Client::mutex).
pub type Mutex = NamedLock<Exclusive>;

/// The side of the readers of an [`RwLock`](crate::RwLock).
///
/// Readers of one client share a lease. Joining them costs no request for 20 ms after the store last reported that nobody waits. The
/// lease has the ttl of its first reader.
///
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
///
/// # When not to use it
/// If most holders write, or hold the lock only briefly, a [`Mutex`] is simpler and just as fast: readers cost requests to the
/// store too. For one consistent snapshot, use a transaction of the database.
#[both]
pub type ReadLock = NamedLock<Shared>;

/// A lock with a limited number of permits, each held by one holder at a time. Made by
/// [`Client::semaphore`](crate::Client::semaphore).
///
/// Each permit is a slot with a number that no other living holder has, and with fencing tokens of its own. The permits of
/// a dead holder are free within one ttl. The store serves requests in order of arrival, so small requests do not overtake a large
/// one, unless they are [`barging`](NamedLock::barging). A quorum (`redlock://`) has no semaphores: the call fails with
/// *unsupported*, and no request is sent.
///
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
///
/// # When not to use it
/// A semaphore limits the number of concurrent holders, not their rate: for requests per second, use a rate limiter. Within
/// one process, use a semaphore of your runtime.
#[both]
pub type Semaphore = NamedLock<Permits>;

impl<M> NamedLock<M> {
    lock_host::option_setters!(all);

    lock_host::option_setters!(each);

    lock_host::option_setters!(on_unavailable);

    #[doc(hidden)]
    pub fn set(mut self, setting: Setting) -> Self {
        self.0.set(setting);
        self
    }

    /// Why this client's waiters for the lock are still waiting, if the store fails: the error of the latest request.
    /// `None` while the store answers, and if there are no waiters.
    ///
    /// A wait outlasts transient errors, and some of them end only when an operator acts: a full disk, a primary that
    /// became a replica. Check this from time to time during long waits, and show it.
    pub fn store_error(&self) -> Option<BackendError> {
        self.0.last_error()
    }

    /// The lock as a part of something larger.
    #[doc(hidden)]
    pub fn member(&self) -> Result<Member, Invalid> {
        self.0.member(|driver, name| Backend::locate(&*driver.backend, name))
    }

    /// The client and the name of the lock.
    #[doc(hidden)]
    pub fn identity(&self) -> Result<(ClientId, LockName), Invalid> {
        self.0.identity()
    }

    /// Reports to the observers that the caller continues with a process-local lock.
    #[doc(hidden)]
    pub fn degraded(&self, waited: Duration, error: &BackendError) {
        self.0.degraded(waited, error);
    }

    /// The name of the lock.
    ///
    /// # Errors
    /// `Invalid` for an invalid name, which no acquire accepts.
    pub fn name(&self) -> Result<&LockName, Invalid> {
        self.0.name()
    }

    /// Whether this is a guard of this lock, acquired through the same client or a clone of it.
    pub fn is_held_by(&self, guard: &Guard<M>) -> bool {
        self.0.is_held_by(&guard.0)
    }
}

// Not derived: the clone of a lock needs no clone of its marker.
impl<M> Clone for NamedLock<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
