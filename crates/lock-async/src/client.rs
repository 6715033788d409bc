//! The client of one store.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_core::station::TurnId;
use lock_core::{
    AsyncBackend, AsyncInspect, Capabilities, Certainty, Event, EventSink, Heard, Keeper, Lateness, Lease, Listener,
    LockName, Policy, ReleaseRequest,
};
use lock_host::{Alarms, HostClock, Owners, SharedClock, Stations};

use crate::Mutex;
use crate::cell::{Cell, Ports};
use crate::driver::Driver;
use crate::keeper::KeeperHandle;

/// A client of one store. Cheap to clone; all clones share their stations, one keeper and one driver.
///
/// Made on a tokio runtime, which has to live as long as the client. The locks of a client exclude each other as they
/// exclude those of other processes.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn AsyncBackend>,
    pub(crate) policy: Policy,
    pub(crate) ports: Arc<Ports>,
    stations: Arc<Stations<Cell>>,
    pub(crate) owners: Owners,
    turns: AtomicU64,
}

/// Makes a [`Client`] that differs from the usual.
#[derive(Debug)]
pub struct Builder {
    backend: Arc<dyn AsyncBackend>,
    policy: Policy,
    clock: SharedClock,
}

impl Builder {
    /// Uses another clock: the one of the store, where that is moved by hand in a test.
    #[must_use]
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// How long one request may take; a sixth of the ttl but at most a second where nothing is set.
    #[must_use]
    pub fn op_timeout(mut self, op_timeout: Option<Duration>) -> Self {
        self.policy.op_timeout = op_timeout;
        self
    }

    /// How many times a lease is passed on between local waiters before other processes get their turn; 0 for never.
    #[must_use]
    pub fn chain(mut self, chain: u32) -> Self {
        self.policy.chain = chain;
        self
    }

    /// Makes the client, on the present tokio runtime.
    ///
    /// # Errors
    /// Those of starting two threads.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn build(self) -> io::Result<Client> {
        let Self { backend, policy, clock } = self;
        let stations = Arc::new(Stations::new(policy));
        let keeper = Keeper::new(policy, lock_host::random_u64()?);
        let renewing = Arc::clone(&backend).for_keeper();
        let alarms = Alarms::start(Arc::clone(&clock))?;
        let (driver, inbox) = Driver::spawn(Arc::clone(&backend));
        let keeper = KeeperHandle::start(keeper, Arc::clone(&clock), renewing, Arc::downgrade(&stations), inbox)?;
        let ports = Arc::new(Ports { clock, alarms, driver, keeper });
        let (owners, turns) = (Owners::default(), AtomicU64::new(0));
        let shared = Arc::new(Shared { backend, policy, ports, stations, owners, turns });
        shared.backend.listen(EventSink::of(Arc::downgrade(&shared)));
        Ok(Client { shared })
    }
}

impl Client {
    /// A client of a store, with the usual settings.
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
        let policy = Policy::new(backend.capabilities());
        Builder { backend, policy, clock: Arc::new(HostClock) }
    }

    /// A lock by its name, to be acquired. The name is checked when it is.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(Arc::clone(&self.shared), name.as_ref())
    }

    /// What the store can do.
    pub fn capabilities(&self) -> Capabilities {
        self.shared.backend.capabilities()
    }

    /// What operators should know of the store as it was found when this client was connected, such as that it may drop
    /// held locks. Each is a sentence without secrets; most often there is none.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.backend.warnings()
    }

    /// The store's view for operators, if it has one.
    pub fn inspect(&self) -> Option<&dyn AsyncInspect> {
        self.shared.backend.inspect()
    }

    /// How late renewals go out: a machine or a store that is too slow for the ttl shows here before a lock is lost.
    pub fn keeper_lateness(&self) -> Lateness {
        self.shared.ports.keeper.lateness()
    }

    /// Ends all holds and waits of this client and of its clones, and waits until the store was told.
    ///
    /// Waiters are refused, guards are lost with [`lock_core::LossReason::Closed`]. The store is told once; what it
    /// does not answer within the operation timeout is left to the ttl.
    ///
    /// # Cancel safety
    /// The client is closed when this is first polled; dropping it gives up the waiting only.
    pub async fn close(&self) {
        self.shared.stations.close();
        self.shared.ports.driver.flush().await;
        self.shared.backend.flush(lock_core::FLUSH_WITHIN).await;
    }
}

#[cfg(test)]
impl Client {
    pub(crate) fn cell(&self, name: &str) -> Arc<Cell> {
        self.shared.cell(&name.parse().unwrap()).unwrap()
    }
}

impl Shared {
    pub(crate) fn cell(&self, name: &LockName) -> io::Result<Arc<Cell>> {
        self.stations.cell(name, |station| Cell::new(Arc::clone(&self.ports), station))
    }

    pub(crate) fn find(&self, name: &LockName) -> Option<Arc<Cell>> {
        self.stations.find(name)
    }

    pub(crate) fn next_turn(&self) -> TurnId {
        TurnId(self.turns.fetch_add(1, Ordering::Relaxed))
    }
}

impl Listener for Shared {
    fn hear(&self, event: Event) -> Heard {
        self.stations.deliver(&event)
    }

    fn release_unknown(&self, lease: Lease) {
        let Lease { name, owner, terms, .. } = lease;
        let request = ReleaseRequest { name, owner, terms, certainty: Certainty::Answered };
        self.ports.driver.release(request, self.policy.within(terms.ttl));
    }
}
