//! What a semaphore can do beyond what every lock can.

use lock_core::AcquireError;
use lock_core::limit::{LimitError, Usage};
use lock_host::LimitCall;

use crate::driver::Driver;
use crate::guard::PermitGuard;
use crate::mutex::Semaphore;

impl Semaphore {
    /// Changes the limit for all who use the name, also while permits are held and waited for.
    ///
    /// Nobody loses a permit. If the limit is lowered, nothing is granted until it is no longer exceeded; if it is raised, those
    /// who wait are served at once. A waiter for more permits than the new limit gets an error.
    ///
    /// For seven days after the last change, the old limits are accepted as well (the last eight of them: what was in use, and
    /// what this semaphore was made with), and mean the new one. So a rolling deployment can change the limit: processes of
    /// the new version call this when they start. If several set it at the same time, the last one wins.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or limit; `Backend` if the name is in use as a lock, if the store failed, or if it cannot
    /// change limits; `Closed` if this client was closed. After an error whose effect is unknown, call it again.
    ///
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
    pub async fn set_limit(&self, limit: u32) -> Result<(), LimitError> {
        ask_limit(self.0.set_limit(limit)?).await.map(drop)
    }

    /// How many permits nobody holds, of the limit in force: a snapshot from one request to the store. Others may take them, or
    /// wait for them, before you ask.
    ///
    /// # Errors
    /// As [`set_limit`](Self::set_limit). Another limit than the one in use is an error, as for an acquire.
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn available_permits(&self) -> Result<u32, LimitError> {
        Ok(ask_limit(self.0.look_at_limit()?).await?.available())
    }

    /// The limit in force: what this semaphore was made with, unless it was changed. A snapshot, from one request to the store.
    ///
    /// # Errors
    /// As [`available_permits`](Self::available_permits).
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn limit(&self) -> Result<u32, LimitError> {
        Ok(ask_limit(self.0.look_at_limit()?).await?.limit.get())
    }

    /// Waits for `count` permits, from 1 to 64, which are granted together: short for an acquire of [`many`](Self::many).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); `Invalid` for none, for more than the limit, and for more than 64.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many(&self, count: u32) -> Result<PermitGuard, AcquireError> {
        self.many(count).acquire().await
    }

    /// Takes `count` permits, from 1 to 64, if they are free; `None` if they are not.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire); `Invalid` for none, for more than the limit, and for more than 64.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire_many(&self, count: u32) -> Result<Option<PermitGuard>, AcquireError> {
        self.many(count).try_acquire().await
    }
}

/// Sends a request about a limit.
async fn ask_limit(LimitCall { driver, within, request }: LimitCall<'_, Driver>) -> Result<Usage, LimitError> {
    let answer = driver.backend.limit()?.ask(&request, within).await;
    Ok(answer.map_err(|error| error.with_name(&request.name))?)
}
