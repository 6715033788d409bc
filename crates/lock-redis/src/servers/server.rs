//! The client of one server, async or blocking.

use std::sync::Arc;

use lock_core::{Capabilities, Prefix};

use crate::RedisConfig;
use crate::channel::Channel;
use crate::hash_slot::HashSlot;
use crate::replicas::Copies;
use crate::target::Target;
use crate::wire::Wire;

/// The client of one server.
#[derive(Clone)]
pub(crate) struct Server<S> {
    pub(crate) wire: Wire,
    pub(crate) source: S,
}

/// A server, and the hash slots that it serves if it is one of a cluster.
pub(crate) type Serving<S> = (Arc<Server<S>>, Vec<HashSlot>);

/// Where the connections to a server come from.
pub(crate) trait Source: Clone + Send + Sync + 'static {
    /// Its own ones. Nothing is connected yet.
    fn own(target: Target, channel: Option<Arc<Channel>>) -> Self;

    /// Other connections of its own to the same server, or what was passed in.
    fn another(&self) -> Self;

    /// What these connections promise besides, or its own ones do.
    fn promise(source: Option<&Self>, redis: Capabilities) -> Capabilities;

    /// A hash slot has left the server.
    fn forget_verified(&self);

    /// Whether they listen for notifications, and those to the next primary have to do so as well.
    fn listens(&self) -> bool {
        false
    }

    /// Somebody waits or holds, and wants to be notified when to ask again.
    fn listen_in_time(&self) {}
}

impl<S: Source> Server<S> {
    /// Nothing is connected yet.
    pub(crate) fn new(target: Target, channel: Option<Arc<Channel>>, prefix: &Prefix, copies: Option<Copies>) -> Self {
        let wire = Wire::own(&target, channel.clone()).with_prefix(prefix).with_copies(copies);
        Self { wire, source: S::own(target, channel) }
    }

    /// The one server of a configuration.
    pub(crate) fn of(target: Target, config: &RedisConfig) -> Self {
        Self::new(target, Channel::new(), config.own_prefix(), config.copies())
    }

    /// The same over connections of its own, or over what was passed in.
    pub(crate) fn another(&self) -> Self {
        Self { wire: self.wire.without_inbox(), source: self.source.another() }
    }
}
