//! Waiting until a number of processes has arrived.

use lock_core::Moment;
use lock_host::Wake;
use tokio::sync::Notify;

use crate::driver::{Driver, ask};

lock_host::latch! {
    [async] [.await]

    /// # Examples
    /// ```
    /// # mod leasehold { pub use lock_core::latch; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use std::time::Duration;
    /// use leasehold::latch::LatchError;
    ///
    /// let loaded = locks.latch("load:2026-11-22");
    /// loaded.expect(3).await?; // the coordinator
    /// for shard in ["shard-1", "shard-2"] {
    ///     loaded.arrive_as(shard).await?; // in other processes; a shard that is loaded again counts once
    /// }
    /// match loaded.wait_for(Duration::from_millis(10)).await {
    ///     Err(error @ LatchError::TimedOut { .. }) => assert_eq!(error.missing(), Some(1)),
    ///     other => other?,
    /// }
    /// loaded.arrive_as("shard-3").await?;
    /// loaded.wait().await?;
    /// # Ok(())
    /// # }
    /// ```
    struct Latch;

    /// # Cancel safety
    /// Can be dropped at any point: the number may or may not be set. Setting it again is harmless.
    async fn expect;

    /// # Cancel safety
    /// A dropped call may or may not have been counted, and another one would count again. If you may have to drop it, use
    /// [`arrive_as`](Self::arrive_as).
    async fn arrive;

    /// # Cancel safety
    /// Can be dropped at any point: the id may or may not have been counted. Arriving again is harmless.
    async fn arrive_as;

    /// # Cancel safety
    /// Changes nothing.
    async fn remaining;

    /// # Cancel safety
    /// Changes nothing.
    async fn state;

    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    async fn wait;

    /// The call may return an operation timeout late.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    async fn wait_for;

    /// # Cancel safety
    /// Can be dropped at any point: the generation may or may not have ended.
    async fn reset;
}

/// What a task sleeps on.
#[derive(Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// Sleeps until this moment, or until the latch may have changed.
async fn sleep(call: &Call<'_>, until: Moment) {
    let _alarm = call.alarm(until);
    call.bell().0.notified().await;
}
