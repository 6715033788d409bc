//! What a semaphore can do beyond what every lock can.

use lock_core::Operation;
use lock_core::limit::{LimitError, Usage};
use lock_host::{LimitCall, caught};

use crate::driver::Driver;
use crate::guard::PermitGuard;
use crate::mutex::Semaphore;

lock_host::limits! {
    [] []

    /// # Blocking
    /// Until the store has answered one request; for at most an operation timeout.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let client = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// let (old, new) = (client.semaphore("gpu", 4), client.semaphore("gpu", 8));
    /// let guard = old.acquire()?;
    /// new.set_limit(8)?;
    /// assert_eq!(old.available_permits()?, 7); // "4" now means 8
    /// # guard.release()?;
    /// # Ok(())
    /// # }
    /// ```
    fn set_limit;

    /// # Blocking
    /// As [`set_limit`](Self::set_limit).
    fn available_permits;

    /// # Blocking
    /// As [`set_limit`](Self::set_limit).
    fn limit;

    /// # Blocking
    /// As the same call for one permit.
    fn acquire_many;

    /// # Blocking
    /// As the same call for one permit.
    fn try_acquire_many;
}

/// Sends a request about a limit. A panic of the backend is an error of the store.
fn ask_limit(LimitCall { driver, within, request }: LimitCall<'_, Driver>) -> Result<Usage, LimitError> {
    let limits = driver.backend.limit()?;
    let answer = caught(Operation::Limit, || limits.ask(&request, within));
    Ok(answer.map_err(|error| error.with_name(&request.name))?)
}
