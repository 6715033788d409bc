//! Servers that a directory names, with a client for each that was needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use lock_core::{Delivery, EventSink, Lease, Listener, LockName, Prefix, StoreEvent, Waiting};
use redis::Client;

use super::server::{Server, Serving};
use super::source::Own;
use crate::RedisConfig;
use crate::address::Address;
use crate::channel::Channel;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, at, connecting, explain};
use crate::deployment::Deployment;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::routing::{Patience, Routing, unserved};
use crate::span::Span;
use crate::target::Target;
use crate::wire::Wire;

/// The client of each server, and what says which one has a lock.
pub(crate) struct Many<O: Own> {
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) wire: Wire,
    /// Whether waiters are notified: over the connections to each server at which they wait.
    pub(super) waiting: Waiting,
    config: RedisConfig,
    nodes: Mutex<HashMap<Arc<Address>, Node<O>>>,
}

/// The client of a server, and how many departures of hash slots it knows of.
struct Node<O: Own> {
    address: Arc<Address>,
    server: Arc<Server<O>>,
    departures: u64,
    /// What the server says is passed on for as long as this is here.
    _relay: Arc<Relay>,
}

/// Passes on what one server says to those that hear the events of all servers.
struct Relay(Arc<dyn Directory>);

impl<O: Own> Many<O> {
    /// Nothing is connected yet.
    pub(super) fn new(directory: Arc<dyn Directory>, config: RedisConfig, waiting: Waiting) -> Arc<Self> {
        let many = Arc::new(Self { wire: Wire::of(&config), directory, waiting, config, nodes: Mutex::default() });
        many.directory.follow(EventSink::of(Arc::downgrade(&many)));
        many
    }

    pub(super) fn with_prefix(&self, prefix: &Prefix) -> Arc<Self> {
        Self::new(Arc::clone(&self.directory), self.config.clone().under(prefix.clone()), self.waiting)
    }

    /// The same over other connections, on which nobody is notified.
    pub(crate) fn unheard(&self) -> Arc<Self> {
        Self::new(Arc::clone(&self.directory), self.config.clone(), Waiting::Queue)
    }

    pub(crate) fn config(&self) -> &RedisConfig {
        &self.config
    }

    pub(crate) fn deployment(&self) -> Deployment {
        self.config.servers.deployment
    }

    /// Asks where the servers are, for the first time. If no server of a cluster answers, says whether that is because of TLS.
    pub(crate) fn find(&self) -> Result<(), Failure> {
        let explained = |failure| match self.config.servers.guides.first() {
            Some(seed) if self.deployment() == Deployment::Cluster => explain(seed, failure),
            Some(_) | None => failure,
        };
        self.directory.refresh(Span::from_now(CONNECT_WITHIN)).map_err(explained)
    }

    /// The first contact failed.
    ///
    /// # Errors
    /// What to say, unless it is to be tried again after a pause.
    pub(crate) fn not_found(&self, patience: &mut Patience, failure: Failure) -> Result<(), Failure> {
        if self.deployment() == Deployment::Cluster || !failure.may_pass() {
            return Err(failure);
        }
        Arc::clone(&self.directory).doubt(&failure);
        patience.failed(failure)
    }

    /// The client of a server.
    pub(crate) fn node(&self, address: &Arc<Address>) -> Result<Arc<Server<O>>, Failure> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.directory.has_replaced(address) {
            return Err(Failure::moved());
        }
        let departures = self.directory.departures(address);
        if let Some(node) = nodes.get_mut(address)
            && !self.directory.has_replaced(&node.address)
        {
            if std::mem::replace(&mut node.departures, departures) != departures {
                node.server.source.own().into_iter().for_each(|own| own.forget_verified());
            }
            return Ok(Arc::clone(&node.server));
        }
        let node = self.make(Arc::clone(address), departures)?;
        let server = Arc::clone(&node.server);
        nodes.retain(|address, _| self.directory.knows(address));
        nodes.insert(Arc::clone(address), node);
        Ok(server)
    }

    fn make(&self, address: Arc<Address>, departures: u64) -> Result<Node<O>, Failure> {
        let failed = |error| classify(connecting(&address.to_string(), CONNECT_WITHIN), &error);
        let client = Client::open(at(&self.config.servers.server, &address)).map_err(failed)?;
        let target = Target::new(client, self.deployment(), self.config.failover);
        let target = target.named_by(Arc::clone(&self.directory), Arc::clone(&address));
        let channel = if self.waiting == Waiting::QueueWithPush { Channel::new() } else { None };
        let relay = Arc::new(Relay(Arc::clone(&self.directory)));
        channel.iter().for_each(|channel| channel.listen(EventSink::of(Arc::downgrade(&relay))));
        let server = Server::new(target, channel, &self.config.prefix, self.config.copies());
        Ok(Node { address, server: Arc::new(server), departures, _relay: relay })
    }

    /// All servers.
    pub(crate) fn each(&self) -> Result<Vec<Serving<O>>, Failure> {
        let mut served: BTreeMap<_, Vec<_>> = BTreeMap::new();
        if self.deployment() == Deployment::Cluster {
            for slot in HashSlot::all() {
                served.entry(self.primary_of(slot).ok_or_else(|| unserved(slot))?).or_default().push(slot);
            }
        } else {
            served.extend(self.directory.primaries().into_iter().map(|address| (address, Vec::new())));
        }
        served.into_iter().map(|(address, slots)| Ok((self.node(&address)?, slots))).collect()
    }

    /// The way of a request about a lock.
    pub(crate) fn routing(&self, name: &LockName, span: Span) -> Routing<'_> {
        Routing::new(&self.directory, self.deployment(), self.wire.hash_slot(name), span)
    }

    /// The server that has a lock, if it is known.
    pub(crate) fn primary(&self, name: &LockName) -> Option<Arc<Address>> {
        self.primary_of(self.wire.hash_slot(name))
    }

    fn primary_of(&self, hash_slot: HashSlot) -> Option<Arc<Address>> {
        Arc::clone(&self.directory).primary_of(hash_slot)
    }
}

/// Hears that another server has become the primary.
impl<O: Own> Listener for Many<O> {
    fn deliver(&self, _event: StoreEvent) -> Delivery {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let left: Vec<_> = nodes.extract_if(|_, node| self.directory.has_replaced(&node.address)).collect();
        drop(nodes);
        if left.iter().any(|(_, node)| node.server.source.own().is_some_and(|own| own.listens()))
            && let Some(address) = self.directory.primaries().first()
            && let Ok(server) = self.node(address)
        {
            server.source.listen_in_time();
        }
        Delivery::Taken
    }

    fn release_unknown(&self, _lease: Lease) {}
}

impl Listener for Relay {
    fn deliver(&self, event: StoreEvent) -> Delivery {
        self.0.listeners().deliver(&event);
        Delivery::Taken
    }

    /// The listeners do that themselves.
    fn release_unknown(&self, _lease: Lease) {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use lock_core::RequestOrder;

    use super::*;
    use crate::servers::Servers;

    /// How often it forgot what was verified.
    #[derive(Default)]
    struct Forgets(AtomicU32);

    impl Own for Forgets {
        type Lender = ();
        const LISTEN_LATE: bool = false;

        fn new(_target: Target, _channel: Option<Arc<Channel>>) -> Self {
            Self::default()
        }

        fn another(&self) -> Self {
            Self::default()
        }

        fn order(_lender: Option<&()>) -> RequestOrder {
            RequestOrder::Unordered
        }

        fn forget_verified(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn listens(&self) -> bool {
            false
        }

        fn listen_in_time(&self) {}
    }

    #[test]
    fn a_hash_slot_that_came_back_has_to_be_verified_again() {
        let config = RedisConfig::from_url("redis+cluster://127.0.0.1:1").unwrap();
        let Ok(Servers::Many(many)) = Servers::<Forgets>::of(&config) else { panic!("it is a cluster") };
        let hash_slot = HashSlot::of(b"a");
        let [here, there] = ["h1:1", "h2:2"].map(|text| Arc::new(Address::read(text).unwrap()));
        let times = || many.node(&here).ok().unwrap().source.own().unwrap().0.load(Ordering::Relaxed);
        let moved = |to: &Arc<Address>| Arc::clone(&many.directory).moved(hash_slot, Address::clone(to));
        moved(&here);
        assert_eq!(times(), 0);
        // No request was sent to either of them meanwhile.
        moved(&there);
        moved(&here);
        assert_eq!((times(), times()), (1, 1));
    }
}
