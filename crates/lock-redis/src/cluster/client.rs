//! What a client of a cluster consists of, async or blocking. No I/O.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lock_core::{
    BackendError, Capabilities, Durability, Effect, ErrorKind, EventSink, Isolation, Location, LockName, Operation,
    Renewed, Waiting,
};

use super::redirect::Address;
use super::routing::Routing;
use super::topology::Topology;
use crate::channel::Channel;
use crate::config::Deployment;
use crate::failure::Failure;
use crate::span::Span;
use crate::target::Target;
use crate::wire::Wire;
use crate::{ABILITIES, BACKEND, MODES, RedisConfig};

/// The clients of the primaries, and what leads to them.
pub(super) struct Client<N> {
    pub(super) config: Arc<RedisConfig>,
    pub(super) topology: Arc<Topology>,
    wire: Wire,
    inbox: Inbox,
    nodes: Mutex<HashMap<Arc<Address>, Node<N>>>,
}

/// The client of one primary.
pub(super) trait Shard {
    /// Nothing is connected yet.
    fn shard(target: Target, config: &RedisConfig, channel: Option<Arc<Channel>>) -> Self;

    /// A hash slot has left the primary.
    fn forget_verified(&self);
}

/// A client, and how many departures of hash slots it knows of.
struct Node<N> {
    client: Arc<N>,
    departures: u64,
}

/// Whether waiters are notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inbox {
    /// Over the connections to each primary at which they wait.
    Open,
    /// They poll, or nobody waits over these connections.
    None,
}

impl<N: Shard> Client<N> {
    /// A client of the cluster of a configuration. Nothing is connected yet.
    pub(super) fn new(config: &RedisConfig) -> Result<Self, Failure> {
        let Deployment::Cluster(seeds) = config.deployment() else {
            let message = format!("{} does not lead to a cluster", config.shown_url());
            return Err(Failure::new(ErrorKind::Config, Effect::None, message).remedy(crate::classify::CLUSTER));
        };
        let (server, store) = (
            config.shown_url().to_owned(),
            Deployment::store_of("redis+cluster", seeds.iter().map(Address::to_string)),
        );
        let wire = Wire::of_cluster(server, store, config.own_prefix().clone(), config.copies());
        let topology = Topology::new(seeds.clone(), config.server().clone());
        Ok(Self { config: Arc::new(config.clone()), topology, wire, inbox: Inbox::Open, nodes: Mutex::default() })
    }

    /// The same with other connections.
    pub(super) fn with_inbox(&self, inbox: Inbox) -> Self {
        let (config, topology) = (Arc::clone(&self.config), Arc::clone(&self.topology));
        Self { config, topology, wire: self.wire.clone(), inbox, nodes: Mutex::default() }
    }

    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The client of a server.
    pub(super) fn node(&self, address: &Arc<Address>) -> Result<Arc<N>, Failure> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let departures = self.topology.departures(address);
        if let Some(node) = nodes.get_mut(address) {
            if std::mem::replace(&mut node.departures, departures) != departures {
                node.client.forget_verified();
            }
            return Ok(Arc::clone(&node.client));
        }
        let target = Target::fixed(self.topology.client_of(address)?);
        let client = Arc::new(N::shard(target, &self.config, self.channel()));
        nodes.retain(|address, _| self.topology.knows(address));
        nodes.insert(Arc::clone(address), Node { client: Arc::clone(&client), departures });
        Ok(client)
    }

    /// Where one server notifies this client. All of them reach the same listeners.
    fn channel(&self) -> Option<Arc<Channel>> {
        let channel = match self.inbox {
            Inbox::Open => Channel::new()?,
            Inbox::None => return None,
        };
        channel.listen(EventSink::of(Arc::downgrade(&self.topology)));
        Some(channel)
    }

    /// The way of a request about a lock.
    pub(super) fn routing(&self, name: &LockName, span: Span) -> Routing<'_> {
        Routing::new(&self.topology, self.wire.hash_slot(name), span)
    }

    /// The primary of a lock, if it is known.
    pub(super) fn primary_of(&self, name: &LockName) -> Option<Arc<Address>> {
        self.topology.primary_of(self.wire.hash_slot(name))
    }

    /// Requests may overtake each other: one that was sent to another server first comes late. Each hash slot has its own counter.
    pub(super) fn capabilities(&self) -> Capabilities {
        let waiting = match self.inbox {
            Inbox::Open => Waiting::QueueWithPush,
            Inbox::None => Waiting::Queue,
        };
        let redis = Capabilities::new(BACKEND, waiting, Durability::ClockFloor);
        redis.with_modes(MODES).with_abilities(ABILITIES).with_isolation(Isolation::Isolated)
    }

    pub(super) fn locate(&self, name: &LockName) -> Option<Location> {
        self.wire.locate(name)
    }
}

/// The answers to renewals that were sent each for itself. An error counts for its own lease only, which is renewed again soon.
pub(super) fn renewed(answers: Vec<Result<Renewed, Failure>>) -> Result<Vec<Renewed>, BackendError> {
    if answers.iter().all(Result::is_err)
        && let Some(Err(failure)) = answers.first()
    {
        return Err(failure.clone().into_error(Operation::Renew));
    }
    let judged = |answer: Result<_, Failure>| {
        answer.unwrap_or_else(|failure| Renewed::Unsure(failure.into_error(Operation::Renew)))
    };
    Ok(answers.into_iter().map(judged).collect())
}

/// The answer to a renewal of one lease.
pub(super) fn only(answers: Vec<Renewed>) -> Result<Renewed, Failure> {
    let [answer] = <[Renewed; 1]>::try_from(answers).map_err(|_| Failure::strange_answer())?;
    Ok(answer)
}

impl<N> fmt::Debug for Client<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("servers", &self.config.shown_url())
            .field("prefix", &self.wire.prefix.as_deref())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::hash_slot::HashSlot;

    /// How often it forgot what was verified.
    struct Forgets(AtomicU32);

    impl Shard for Forgets {
        fn shard(_target: Target, _config: &RedisConfig, _channel: Option<Arc<Channel>>) -> Self {
            Self(AtomicU32::new(0))
        }

        fn forget_verified(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_renewal_that_fails_at_one_primary_says_why_for_its_lease() {
        let failure = || Failure::no_answer("redis://h1:1", std::time::Duration::from_secs(1));
        let answers = renewed(vec![Ok(Renewed::NotHeld), Err(failure())]).unwrap();
        let [Renewed::NotHeld, Renewed::Unsure(error)] = &answers[..] else { panic!("{answers:?}") };
        assert!(error.to_string().contains("redis renew: no answer from redis://h1:1"), "{error}");
        assert!(renewed(vec![Err(failure()), Err(failure())]).is_err(), "no primary answered");
    }

    #[test]
    fn a_hash_slot_that_came_back_has_to_be_verified_again() {
        let client = Client::<Forgets>::new(&RedisConfig::from_url("redis+cluster://127.0.0.1:1").unwrap()).unwrap();
        let hash_slot = HashSlot::of(b"a");
        let [here, there] = ["h1:1", "h2:2"].map(|text| Arc::new(Address::read(text).unwrap()));
        let times = || client.node(&here).unwrap().0.load(Ordering::Relaxed);
        client.topology.moved(hash_slot, Address::clone(&here));
        assert_eq!(times(), 0);
        // No request was sent to either of them meanwhile.
        client.topology.moved(hash_slot, Address::clone(&there));
        client.topology.moved(hash_slot, Address::clone(&here));
        assert_eq!((times(), times()), (1, 1));
    }
}
