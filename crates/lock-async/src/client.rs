//! The client of one store.

use std::io;
use std::sync::Arc;

use lock_core::{AsyncBackend, AsyncInspect, Capabilities, FLUSH_WITHIN, Lateness};
use lock_host::{Build, Ports, Settings, Stations};
use tokio::sync::Notify;

use crate::driver::Driver;
use crate::keeper;
use crate::mutex::Mutex;

/// A client of one store. Cheap to clone; all clones share their stations, one keeper and one driver.
///
/// Made on a tokio runtime, which has to live as long as the client. The locks of a client exclude each other as they
/// exclude those of other processes.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) stations: Arc<Stations<Driver>>,
}

/// Makes a [`Client`] with other settings than the defaults.
pub type Builder = lock_host::Builder<Client>;

impl Build for Client {
    type Backend = dyn AsyncBackend;

    fn build(settings: Settings<Self::Backend>) -> io::Result<Self> {
        let Settings { backend, policy, clock } = settings;
        let (driver, left_over) = Driver::spawn(Arc::clone(&backend));
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        let stations = Stations::new(Ports::new(driver, policy, clock, move || wake.notify_one())?);
        keeper::start(&stations, Arc::clone(&backend).for_keeper(), changed, left_over)?;
        backend.listen(stations.sink());
        Ok(Self { stations })
    }
}

impl Client {
    /// A client of a store, with the default settings.
    ///
    /// # Errors
    /// Those of starting two threads.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(backend: Arc<dyn AsyncBackend>) -> io::Result<Self> {
        Self::builder(backend).build()
    }

    /// Begins a client with other settings.
    pub fn builder(backend: Arc<dyn AsyncBackend>) -> Builder {
        Builder::new(backend)
    }

    /// A lock by its name, to be acquired. The name is checked then.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(Arc::clone(&self.stations), name.as_ref())
    }

    /// What the store can do.
    pub fn capabilities(&self) -> Capabilities {
        self.backend().capabilities()
    }

    /// What operators should know of the store as it was found when this client was connected, such as that it may drop
    /// held locks. Each is a sentence without secrets; most often there is none.
    pub fn warnings(&self) -> Vec<String> {
        self.backend().warnings()
    }

    /// The store's view for operators, if it has one.
    pub fn inspect(&self) -> Option<&dyn AsyncInspect> {
        self.backend().inspect()
    }

    /// How late renewals go out: a machine or a store that is too slow for the ttl shows here before a lock is lost.
    pub fn keeper_lateness(&self) -> Lateness {
        self.stations.ports().renewals.lateness()
    }

    /// Ends all holds and waits of this client and of its clones, and waits until the store was told.
    ///
    /// Waiters are refused, guards are lost with [`lock_core::LossReason::Closed`]. The store is told once; what it
    /// does not answer within the operation timeout is left to the ttl.
    ///
    /// # Cancel safety
    /// The client is closed when this is first polled; dropping it gives up the waiting only.
    pub async fn close(&self) {
        self.stations.close();
        self.stations.ports().driver.flush().await;
        self.backend().flush(FLUSH_WITHIN).await;
    }

    fn backend(&self) -> &dyn AsyncBackend {
        &*self.stations.ports().driver.backend
    }
}
