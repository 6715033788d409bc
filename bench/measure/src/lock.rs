//! What is measured, in one form for all subjects.

use std::future::{Future, pending};

use anyhow::{Result, bail};

/// A connected lock library.
pub trait Client: Send + Sync + 'static {
    /// Its locks.
    type Lock: Lock;

    /// A lock by its name.
    ///
    /// # Errors
    /// If the library does not take the name.
    fn lock(&self, name: &str) -> Result<Self::Lock>;
}

/// One lock, used by one task.
pub trait Lock: Send + Sync + 'static {
    /// Proof of holding it.
    type Held: Send + Sync + 'static;

    /// Whether the library renews leases by itself, so that [`keep`](Self::keep) is not needed.
    const RENEWS_BY_ITSELF: bool;

    /// Waits for the lock as the library waits.
    fn acquire(&self) -> impl Future<Output = Result<Self::Held>> + Send;

    /// Takes the lock if nobody holds it, where that is measured.
    fn try_acquire(&self) -> impl Future<Output = Result<Option<Self::Held>>> + Send {
        async { bail!("this library is not measured by tries") }
    }

    /// Releases it and awaits the answer.
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<()>> + Send;

    /// Releases it without awaiting the answer, where the library can.
    fn let_go(&self, held: Self::Held) -> impl Future<Output = Result<()>> + Send {
        self.release(held)
    }

    /// Renews the lease, where the library does not; ends when the lease is lost.
    fn keep(&self, held: &Self::Held) -> impl Future<Output = ()> + Send {
        let _ = held;
        pending()
    }

    /// Whether the library still takes the lock for held.
    fn is_held(&self, held: &Self::Held) -> bool {
        let _ = held;
        true
    }
}
