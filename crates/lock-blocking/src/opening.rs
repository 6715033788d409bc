//! Opening and closing a client, for threads.

use std::io;

use lock_core::{BlockingBackend, FLUSH_WITHIN, RequestOrder};
use lock_host::{Build, Settings};

use crate::client::Client;
use crate::closing;
use crate::driver::Driver;
use crate::keeper;
use crate::sync::{Arc, Condvar};

/// Configures a [`Client`].
pub type Builder = lock_host::Builder<Client>;

impl Build for Client {
    type Backend = dyn BlockingBackend;

    fn build(mut settings: Settings<Self::Backend>) -> io::Result<Self> {
        let backend = Arc::clone(&settings.backend);
        // Each thread runs its own actions, so their order is not certain.
        settings.policy.store.ordering = RequestOrder::Unordered;
        let changed = Arc::new(Condvar::new());
        let woken = Arc::clone(&changed);
        let driver = Driver::new(Arc::clone(&backend));
        let stations = settings.stations(driver, move || woken.notify_one())?;
        keeper::start(&stations, backend, changed)?;
        Ok(Self(stations))
    }
}

impl Client {
    /// A client of a store, with the default settings.
    ///
    /// # Errors
    /// Those of starting two threads.
    pub fn new(backend: Arc<dyn BlockingBackend>) -> io::Result<Self> {
        Self::builder(backend).build()
    }

    /// Begins to configure a client.
    pub fn builder(backend: Arc<dyn BlockingBackend>) -> Builder {
        Builder::new(backend)
    }

    /// Ends all holds and waits of this client and its clones, and waits until the store has answered their releases.
    ///
    /// Waiters are refused, and guards are lost with [`LossReason::Closed`](lock_core::LossReason::Closed). Each release is sent once; if
    /// the store does not answer within the operation timeout, the lease expires with its ttl.
    ///
    /// # Blocking
    /// For at most two operation timeouts, however many locks are in use.
    pub fn close(&self) {
        let left = closing::finish(self.0.close());
        self.backend().flush(FLUSH_WITHIN.min(left));
    }
}
