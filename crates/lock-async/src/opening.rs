//! Opening and closing a client, in async code.

use std::io;
use std::sync::Arc;

use lock_core::{AsyncBackend, FLUSH_WITHIN};
use lock_host::{Build, Settings};
use tokio::sync::Notify;

use crate::client::Client;
use crate::driver::Driver;
use crate::keeper;

/// Configures a [`Client`].
pub type Builder = lock_host::Builder<Client>;

impl Build for Client {
    type Backend = dyn AsyncBackend;

    fn build(settings: Settings<Self::Backend>) -> io::Result<Self> {
        let backend = Arc::clone(&settings.backend);
        let (driver, left_over) = Driver::spawn(Arc::clone(&backend));
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        let stations = settings.stations(driver, move || wake.notify_one())?;
        keeper::start(&stations, backend, changed, left_over)?;
        Ok(Self(stations))
    }
}

impl Client {
    /// A client of a store, with the default settings.
    ///
    /// # Errors
    /// Those of starting two threads.
    ///
    /// # Panics
    /// Outside a tokio runtime. The panic points at the caller.
    #[track_caller]
    pub fn new(backend: Arc<dyn AsyncBackend>) -> io::Result<Self> {
        Self::builder(backend).build()
    }

    /// Begins to configure a client.
    pub fn builder(backend: Arc<dyn AsyncBackend>) -> Builder {
        Builder::new(backend)
    }

    /// Ends all holds and waits of this client and its clones, and waits until the store has answered their releases.
    ///
    /// Waiters are refused, and guards are lost with [`LossReason::Closed`](lock_core::LossReason::Closed). Each release is sent once; if
    /// the store does not answer within the operation timeout, the lease expires with its ttl.
    ///
    /// # Cancel safety
    /// The client is closed when the future is first polled; dropping the future only stops the waiting.
    pub async fn close(&self) {
        let sites = self.0.close();
        sites.iter().for_each(|site| site.attend());
        for site in sites {
            // Another thread is in the middle of a poll, which ends at once.
            while site.lock().waiters.requests.is_polled() {
                tokio::task::yield_now().await;
            }
        }
        self.0.context().driver.flush().await;
        self.backend().flush(FLUSH_WITHIN).await;
    }
}
