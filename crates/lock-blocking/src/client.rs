//! The client of one store.

use std::io;
use std::time::Instant;

use lock_core::{BlockingBackend, BlockingInspect, Capabilities, FLUSH_WITHIN, Lateness, RequestOrder};
use lock_host::{Build, Ports, Settings, Stations};

use crate::driver::{self, Driver, Site};
use crate::keeper;
use crate::mutex::Mutex;
use crate::sync::{Arc, Condvar};

/// A client of one store. Cheap to clone; all clones share their stations and one keeper.
///
/// The locks of a client exclude each other as they exclude those of other processes.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) stations: Arc<Stations<Driver>>,
}

/// Makes a [`Client`] with other settings than the defaults.
pub type Builder = lock_host::Builder<Client>;

impl Build for Client {
    type Backend = dyn BlockingBackend;

    fn build(settings: Settings<Self::Backend>) -> io::Result<Self> {
        let Settings { backend, mut policy, clock } = settings;
        // Each thread runs its own actions, so none is sure to come before another.
        policy.store.ordering = RequestOrder::Unordered;
        let changed = Arc::new(Condvar::new());
        let woken = Arc::clone(&changed);
        let driver = Driver::new(Arc::clone(&backend));
        let stations = Stations::new(Ports::new(driver, policy, clock, move || woken.notify_one())?);
        keeper::start(&stations, Arc::clone(&backend).for_keeper(), changed)?;
        backend.listen(stations.sink());
        Ok(Self { stations })
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

    /// Begins a client with other settings.
    pub fn builder(backend: Arc<dyn BlockingBackend>) -> Builder {
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
    pub fn inspect(&self) -> Option<&dyn BlockingInspect> {
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
    /// # Blocking
    /// For at most two operation timeouts, however many locks are in use.
    pub fn close(&self) {
        let outstanding = |site: Arc<Site>| {
            let outstanding = site.lock().waiters.outstanding()?;
            Some((outstanding, site))
        };
        let open: Vec<_> = self.stations.close().into_iter().filter_map(outstanding).collect();
        let longest = open.iter().map(|(outstanding, _)| outstanding.longest).max().unwrap_or(FLUSH_WITHIN);
        let begin = Instant::now();
        driver::run_all(open.iter().map(|(_, site)| Arc::clone(site)).collect(), begin + longest);
        let end = begin + longest * 2;
        open.iter().for_each(|(outstanding, site)| driver::settle(site, *outstanding, end));
        self.backend().flush(FLUSH_WITHIN.min(end.saturating_duration_since(Instant::now())));
    }

    fn backend(&self) -> &dyn BlockingBackend {
        &*self.stations.ports().driver.backend
    }
}
