//! What a semaphore can do beyond what every lock can.

use lock_core::limit::{LimitError, Usage};
use lock_host::LimitCall;

use crate::driver::Driver;
use crate::guard::PermitGuard;
use crate::mutex::Semaphore;

lock_host::limits! {
    [async] [.await]

    /// # Cancel safety
    /// Can be dropped at any point: the limit may or may not have been changed. Setting it again is harmless.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// let (old, new) = (client.semaphore("gpu", 4), client.semaphore("gpu", 8));
    /// let guard = old.acquire().await?;
    /// new.set_limit(8).await?;
    /// assert_eq!(old.available_permits().await?, 7); // "4" now means 8
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    async fn set_limit;

    /// # Cancel safety
    /// Changes nothing.
    async fn available_permits;

    /// # Cancel safety
    /// Changes nothing.
    async fn limit;

    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    async fn acquire_many;

    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    async fn try_acquire_many;
}

/// Sends a request about a limit.
async fn ask_limit(LimitCall { driver, within, request }: LimitCall<'_, Driver>) -> Result<Usage, LimitError> {
    let answer = driver.backend.limit()?.ask(&request, within).await;
    Ok(answer.map_err(|error| error.with_name(&request.name))?)
}
