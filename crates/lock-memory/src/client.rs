//! One store behind a mutex, its clock, and the clients that share it. The async and the blocking backend are thin wrappers of [`Client`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_core::{
    Ability, Capabilities, Durability, EventSink, Isolation, Listeners, Location, LockName, ModeKind, Moment,
    RequestOrder, StoreEvent, Waiting,
};
use lock_host::{HostClock, SharedClock};

use crate::BACKEND;
use crate::config::{MemoryConfig, StoreName};
use crate::notice::{ClientId, Notice};
use crate::store::Store;

pub(crate) const CAPABILITIES: Capabilities = Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::Process)
    .with_shared_counter()
    .with_ordering(RequestOrder::InOrder)
    .with_isolation(Isolation::Isolated)
    .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
    .with_abilities(Ability::ALL);

/// A store for any number of async and blocking clients. Cloning returns another handle to the same store.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: SharedClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    store: Store,
    listeners: BTreeMap<ClientId, Arc<Listeners>>,
    clients_made: u64,
}

/// The named stores live as long as the process, because a new empty store would draw the old tokens again.
static NAMED: Mutex<BTreeMap<StoreName, MemoryStore>> = Mutex::new(BTreeMap::new());

impl MemoryStore {
    /// An empty store on `clock`.
    pub fn new(clock: SharedClock) -> Self {
        Self { shared: Arc::new(Shared { clock, state: Mutex::default() }) }
    }

    /// The store that `config` names, on the host's clock; a new one if it names none.
    pub fn open(config: &MemoryConfig) -> Self {
        match &config.name {
            Some(name) => lock(&NAMED).entry(name.clone()).or_default().clone(),
            None => Self::default(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let mut state = lock(&self.shared.state);
        state.clients_made += 1;
        Client { store: self.clone(), id: ClientId::new(state.clients_made) }
    }
}

impl Default for MemoryStore {
    /// An empty store on the host's clock.
    fn default() -> Self {
        Self::new(Arc::new(HostClock))
    }
}

/// One client's access to the store. Its events end when it is dropped; its holds and places do not.
#[derive(Debug)]
pub(crate) struct Client {
    store: MemoryStore,
    id: ClientId,
}

impl Client {
    /// Runs one verb at the present moment, then sends other clients the events that follow from it.
    ///
    /// The clock is read under the mutex, so that time never runs backwards from verb to verb. Sinks are called
    /// outside of it, so that they may call the store.
    pub(crate) fn ask<T>(&self, verb: impl FnOnce(&mut Store, Moment, ClientId) -> T) -> T {
        let shared = &self.store.shared;
        let mut state = lock(&shared.state);
        let answer = verb(&mut state.store, shared.clock.now(), self.id);
        let deliveries = state.deliveries();
        drop(state);
        for (listeners, event) in deliveries {
            listeners.deliver(&event);
        }
        answer
    }

    /// The store is named after its address in memory, which is the same for all its clients while one of them exists.
    pub(crate) fn locate(&self, name: &LockName) -> Location {
        let store = format!("{BACKEND}:{:p}", Arc::as_ptr(&self.store.shared));
        Location { store, key: name.as_str().to_owned() }
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        lock(&self.store.shared.state).listeners.entry(self.id).or_default().add(sink);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let listeners = lock(&self.store.shared.state).listeners.remove(&self.id);
        // Outside of the mutex: what a sink owns may be a client of this store.
        drop(listeners);
    }
}

impl State {
    fn deliveries(&mut self) -> Vec<(Arc<Listeners>, StoreEvent)> {
        let notices = self.store.take_notices().into_iter();
        notices.filter_map(|Notice { client, event }| Some((Arc::clone(self.listeners.get(&client)?), event))).collect()
    }
}

/// No verb panics. If the mutex is poisoned, a clock of the user panicked, which is read before anything changes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
