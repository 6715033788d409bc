//! Locks and guards of a kind that is decided at run time.

use lock_host::AnyKind;

use crate::both;
use crate::guard::Guard;
use crate::mutex::NamedLock;

/// A lock whose kind is decided at run time, such as by a configuration file: a [`Mutex`](crate::Mutex), a
/// [`ReadLock`](crate::ReadLock) or a [`Semaphore`](crate::Semaphore). Made by [`into_any`](NamedLock::into_any).
///
/// It has the methods that locks of all kinds have. Set options of one kind, such as the fairness of readers, before the conversion, or with
/// [`options`](NamedLock::options).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// # let configured = Some(4);
/// let lock = match configured {
///     None => client.mutex("import").into_any(),
///     Some(parallel) => client.semaphore("import", parallel).into_any(),
/// };
/// let guard = lock.acquire().await?;
/// println!("slots {:?}", guard.slots()); // [0]; of a mutex, none
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[both]
pub type AnyLock = NamedLock<AnyKind>;

/// A guard of an [`AnyLock`], or of another lock whose kind does not matter. Made by [`into_any`](Guard::into_any).
pub type AnyGuard = Guard<AnyKind>;

impl<M> NamedLock<M> {
    /// The same lock, for code that decides its kind at run time.
    pub fn into_any(self) -> AnyLock {
        NamedLock(self.0.into_any())
    }
}

impl<M> Guard<M> {
    /// The same hold, for code that decides its kind at run time.
    pub fn into_any(self) -> AnyGuard {
        Guard(self.0.into_any())
    }
}

impl AnyGuard {
    /// The numbers of its permits, ascending; empty unless it is of a semaphore.
    pub fn slots(&self) -> &[u32] {
        self.0.hold().lease().slots.get()
    }
}
