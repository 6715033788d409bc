//! The client of one store.

use std::io;
use std::time::{Duration, Instant};

use lock_core::station::TurnId;
use lock_core::{
    BlockingBackend, BlockingInspect, Capabilities, Certainty, Event, EventSink, FLUSH_WITHIN, Heard, Keeper, Lateness,
    Lease, Listener, LockName, Policy, ReleaseRequest,
};
use lock_host::{Alarms, HostClock, Owners, SharedClock, Stations};

use crate::Mutex;
use crate::cell::{Cell, Ports};
use crate::driver::{self, Driver};
use crate::keeper::KeeperHandle;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// A client of one store. Cheap to clone; all clones share their stations and one keeper.
///
/// The locks of a client exclude each other as they
/// exclude those of other processes.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn BlockingBackend>,
    pub(crate) policy: Policy,
    pub(crate) ports: Arc<Ports>,
    stations: Arc<Stations<Cell>>,
    pub(crate) owners: Owners,
    turns: AtomicU64,
}

/// Makes a [`Client`] that differs from the usual.
#[derive(Debug)]
pub struct Builder {
    backend: Arc<dyn BlockingBackend>,
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

    /// Makes the client.
    ///
    /// # Errors
    /// Those of starting two threads.
    pub fn build(self) -> io::Result<Client> {
        let Self { backend, policy, clock } = self;
        let stations = Arc::new(Stations::new(policy));
        let keeper = Keeper::new(policy, lock_host::random_u64()?);
        let renewing = Arc::clone(&backend).for_keeper();
        let ports = Arc::new(Ports {
            alarms: Alarms::start(Arc::clone(&clock))?,
            driver: Driver::new(Arc::clone(&backend)),
            keeper: KeeperHandle::start(keeper, Arc::clone(&clock), renewing, Arc::downgrade(&stations))?,
            clock,
        });
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
    pub fn new(backend: Arc<dyn BlockingBackend>) -> io::Result<Self> {
        Self::builder(backend).build()
    }

    /// Begins a client with other settings.
    pub fn builder(backend: Arc<dyn BlockingBackend>) -> Builder {
        let mut policy = Policy::new(backend.capabilities());
        // Each thread runs its own actions, so none is sure to come before another.
        policy.store.ordering = lock_core::RequestOrder::Unordered;
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
    pub fn inspect(&self) -> Option<&dyn BlockingInspect> {
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
    /// # Blocking
    /// For at most two operation timeouts, however many locks are in use.
    pub fn close(&self) {
        let outstanding = |cell: Arc<Cell>| Some((cell.outstanding()?, cell));
        let open: Vec<_> = self.shared.stations.close().into_iter().filter_map(outstanding).collect();
        let longest = open.iter().map(|(outstanding, _)| outstanding.longest).max().unwrap_or(FLUSH_WITHIN);
        let begin = Instant::now();
        driver::run_all(open.iter().map(|(_, cell)| Arc::clone(cell)).collect(), begin + longest);
        let end = begin + longest * 2;
        open.iter().for_each(|(outstanding, cell)| cell.settle(*outstanding, end));
        self.shared.backend.flush(FLUSH_WITHIN.min(end.saturating_duration_since(Instant::now())));
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
