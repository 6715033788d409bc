//! Methods of semaphores beyond those of every lock, and of their guards.

use lock_core::limit::LimitError;
use lock_core::{AcquireError, FencingToken, WriteToken};

use crate::both;
use crate::guard::PermitGuard;
use crate::limit::ask_limit;
use crate::mutex::Semaphore;

#[both]
impl Semaphore {
    lock_host::option_setters!(fairness);

    /// Changes the limit for all users of the name, even while permits are held and waited for.
    ///
    /// Nobody loses a permit. If the limit is lowered, no permit is granted until usage has dropped below it; if it is raised,
    /// waiters are served at once. A waiter for more permits than the new limit gets an error.
    ///
    /// For seven days after the last change, old limits remain valid and mean the new one: the last eight of those that were in use, or
    /// that a changing semaphore was made with. So a rolling deployment can change the limit: processes of
    /// the new version call this when they start. Of concurrent calls, the last one wins.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or limit; `Backend` if the name is in use as a lock, if the store failed, or if it cannot
    /// change limits; `Closed` if this client was closed. After an error whose effect is unknown, call it again.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the limit may or may not have been changed. Setting it again is harmless.
    ///
    /// # Blocking
    /// Until the store has answered one request; for at most an operation timeout.
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

    /// The number of free permits under the limit in force: a snapshot from one request to the store. Others may take them, or
    /// wait for them, before your next request.
    ///
    /// # Errors
    /// As [`set_limit`](Self::set_limit). Another limit than the one in use is an error, as for an acquire.
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Blocking
    /// As [`set_limit`](Self::set_limit).
    pub async fn available_permits(&self) -> Result<u32, LimitError> {
        Ok(ask_limit(self.0.read_limit()?).await?.available())
    }

    /// The limit in force: what this semaphore was made with, unless it was changed. A snapshot, from one request to the store.
    ///
    /// # Errors
    /// As [`available_permits`](Self::available_permits).
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Blocking
    /// As [`set_limit`](Self::set_limit).
    pub async fn limit(&self) -> Result<u32, LimitError> {
        Ok(ask_limit(self.0.read_limit()?).await?.limit.get())
    }

    /// Waits for `count` permits, from 1 to 64, which are granted together.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); `Invalid` for none, for more than the limit, and for more than 64.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Blocking
    /// As the same call for one permit.
    pub async fn acquire_many(&self, count: u32) -> Result<PermitGuard, AcquireError> {
        Self(self.0.with_count(count)).acquire().await
    }

    /// Takes `count` permits, from 1 to 64, if they are free; `None` if they are not.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire); `Invalid` for none, for more than the limit, and for more than 64.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Blocking
    /// As the same call for one permit.
    pub async fn try_acquire_many(&self, count: u32) -> Result<Option<PermitGuard>, AcquireError> {
        Self(self.0.with_count(count)).try_acquire().await
    }
}

impl PermitGuard {
    /// The number of the permit, or the lowest of several: from 0 to one less than the limit. No other living holder has it.
    pub fn slot(&self) -> u32 {
        self.slots().first().copied().unwrap_or_default()
    }

    /// The numbers of all permits, ascending.
    pub fn slots(&self) -> &[u32] {
        self.0.slots()
    }

    /// The permits with their fencing tokens. The tokens of a slot rise, so that the resource behind the slot can refuse an
    /// earlier holder. Tokens of different slots are not comparable.
    pub fn tokens(&self) -> impl Iterator<Item = (u32, FencingToken)> {
        self.0.tokens()
    }

    /// The permits with the tokens that raise the fence of each slot, before anything of it is read.
    pub fn write_tokens(&self) -> impl Iterator<Item = (u32, WriteToken)> {
        self.0.tokens().map(|(slot, token)| (slot, WriteToken::of_writer(token)))
    }
}
