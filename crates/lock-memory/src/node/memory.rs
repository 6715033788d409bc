//! One node behind a mutex, its clock, and the clients that share it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::node::{Ask, AsyncQuorumNode, BlockingQuorumNode, QuorumNode, RunId, Told};
use lock_core::{BackendError, EventSink, Listeners, Location, LockName, Moment, StoreEvent};
use lock_host::SharedClock;

use super::store::{Freed, NodeStore};
use crate::notice::ClientId;

/// A client of a node in this process, async or blocking. Cloning makes another client of the same node.
///
/// No request waits, so `within` never runs out; a call takes effect in full when it is made, or first polled. A client
/// gets hints about what it waits for once it listens. Its hints end when it is dropped; its holds do not.
pub struct MemoryNode {
    address: Arc<str>,
    client: ClientId,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    first_address: Arc<str>,
    clock: SharedClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    store: NodeStore,
    restarts: u64,
    listeners: BTreeMap<ClientId, Arc<Listeners>>,
    clients_made: u64,
}

impl MemoryNode {
    /// The first client of a new node, which holds nothing and has never voted.
    pub fn new(address: impl Into<Arc<str>>, clock: SharedClock) -> Self {
        let address = address.into();
        let shared = Shared { first_address: Arc::clone(&address), clock, state: Mutex::default() };
        Self::of(address, Arc::new(shared))
    }

    /// Another client of the same node, which lists it under another address.
    #[must_use]
    pub fn listed_as(&self, address: impl Into<Arc<str>>) -> Self {
        Self::of(address.into(), Arc::clone(&self.shared))
    }

    fn of(address: Arc<str>, shared: Arc<Shared>) -> Self {
        let mut state = shared.lock();
        state.clients_made += 1;
        let client = ClientId::new(state.clients_made);
        drop(state);
        Self { address, client, shared }
    }

    /// Loses all its data, without a restart.
    pub fn forget(&self) {
        self.put_back(NodeStore::default());
    }

    /// Restarts with all its data, as another run.
    pub fn restart(&self) {
        self.shared.lock().restarts += 1;
    }

    /// Goes back to the data of `store`, without a restart.
    pub fn put_back(&self, store: NodeStore) {
        self.shared.lock().store = store;
    }

    /// A copy of its data.
    pub fn store(&self) -> NodeStore {
        self.shared.lock().store.clone()
    }

    /// The present moment by the node's clock.
    pub fn clock(&self) -> Moment {
        self.shared.clock.now()
    }

    /// The present run.
    pub fn run(&self) -> RunId {
        self.shared.run(&self.shared.lock())
    }

    /// Runs one request at the present moment, then sends other clients hints about free locks.
    ///
    /// The clock is read under the mutex, so that time never runs backwards from request to request. Sinks are called
    /// outside of it, so that they may call the node.
    fn answer(&self, ask: &Ask) -> Result<Told, BackendError> {
        let mut state = self.shared.lock();
        let run = self.shared.run(&state);
        let inbox = state.listeners.contains_key(&self.client).then_some(self.client);
        let told = state.store.ask(self.clock(), inbox, &run, ask);
        let deliveries = state.deliveries();
        drop(state);
        for (listeners, event) in deliveries {
            listeners.deliver(&event);
        }
        told
    }
}

impl Shared {
    /// No two nodes have the same one, because it contains the address.
    fn run(&self, state: &State) -> RunId {
        RunId(format!("{}#{}", self.first_address, state.restarts + 1))
    }

    /// No request panics. If the mutex is poisoned, a clock of the user panicked, which is read before anything changes.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn deliveries(&mut self) -> Vec<(Arc<Listeners>, StoreEvent)> {
        let listeners = &self.listeners;
        let told =
            |freed: Freed| Some((Arc::clone(listeners.get(&freed.client)?), StoreEvent::Freed { name: freed.name }));
        self.store.take_freed().into_iter().filter_map(told).collect()
    }
}

impl Clone for MemoryNode {
    fn clone(&self) -> Self {
        self.listed_as(Arc::clone(&self.address))
    }
}

impl Drop for MemoryNode {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.store.drop_interests(self.client);
        let listeners = state.listeners.remove(&self.client);
        drop(state);
        // Outside of the mutex: what a sink owns may be a client of this node.
        drop(listeners);
    }
}

impl fmt::Debug for MemoryNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryNode({})", self.address)
    }
}

impl QuorumNode for MemoryNode {
    fn address(&self) -> &str {
        &self.address
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Some(Location { store: self.address.to_string(), key: name.as_str().to_owned() })
    }

    fn listen(&self, sink: EventSink) {
        self.shared.lock().listeners.entry(self.client).or_default().add(sink);
    }
}

impl AsyncQuorumNode for MemoryNode {
    fn for_keeper(&self) -> Self {
        self.clone()
    }

    async fn ask(&self, ask: &Ask, _within: Duration) -> Result<Told, BackendError> {
        self.answer(ask)
    }
}

impl BlockingQuorumNode for MemoryNode {
    fn for_keeper(&self) -> Self {
        self.clone()
    }

    fn ask(&self, ask: &Ask, _within: Duration) -> Result<Told, BackendError> {
        self.answer(ask)
    }
}
