//! The client of one store.

use std::io;
use std::sync::Arc;

use lock_core::{AsyncBackend, AsyncInspect, FLUSH_WITHIN};
use lock_host::{Build, Lock, Ports, Settings, Stations};
use tokio::sync::Notify;

use crate::driver::Driver;
use crate::keeper;
use crate::mutex::Mutex;

/// A client of one store. Cheap to clone; all clones share their stations, one keeper and one driver.
///
/// Made on a tokio runtime, which has to live as long as the client. The locks of a client exclude each other as they
/// exclude those of other processes.
#[derive(Clone, Debug)]
pub struct Client(pub(crate) Arc<Stations<Driver>>);

/// Makes a [`Client`] with other settings than the defaults.
pub type Builder = lock_host::Builder<Client>;

impl Build for Client {
    type Backend = dyn AsyncBackend;

    fn build(settings: Settings<Self::Backend>) -> io::Result<Self> {
        let Settings { backend, policy, clock, observers } = settings;
        let (driver, left_over) = Driver::spawn(Arc::clone(&backend));
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        let ports = Ports::new(driver, policy, clock, move || wake.notify_one())?;
        let stations = Stations::new(ports.observed_by(observers));
        keeper::start(&stations, Arc::clone(&backend).for_keeper(), changed, left_over)?;
        backend.listen(stations.sink());
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
    /// Outside of a tokio runtime. The panic points at the caller.
    #[track_caller]
    pub fn new(backend: Arc<dyn AsyncBackend>) -> io::Result<Self> {
        Self::builder(backend).build()
    }

    /// Begins a client with other settings.
    pub fn builder(backend: Arc<dyn AsyncBackend>) -> Builder {
        Builder::new(backend)
    }

    /// A lock by its name, to be acquired. The name can be text or a [`LockName`](lock_core::LockName); text that is not a
    /// valid name is an error of the acquire.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex(Lock::new(&self.0, name.as_ref()))
    }

    /// The store's interface for operators, if it has one.
    pub fn inspect(&self) -> Option<&dyn AsyncInspect> {
        self.backend().inspect()
    }

    lock_host::client_queries!();

    /// Ends all holds and waits of this client and of its clones, and waits until the store knows.
    ///
    /// Waiters are refused, guards are lost with [`lock_core::LossReason::Closed`]. Each release is sent once; if the
    /// store does not answer within the operation timeout, the lease ends by its ttl.
    ///
    /// # Cancel safety
    /// The client is closed when this is first polled; dropping it gives up the waiting only.
    pub async fn close(&self) {
        self.0.close();
        self.0.ports().driver.flush().await;
        self.backend().flush(FLUSH_WITHIN).await;
    }

    fn backend(&self) -> &dyn AsyncBackend {
        &*self.0.ports().driver.backend
    }
}
