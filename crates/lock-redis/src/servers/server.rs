//! The client of one server, async or blocking.

use std::sync::Arc;

use lock_core::Prefix;

use super::source::{Own, Source};
use crate::RedisConfig;
use crate::channel::Channel;
use crate::hash_slot::HashSlot;
use crate::replicas::Copies;
use crate::target::Target;
use crate::wire::Wire;

/// The client of one server.
pub(crate) struct Server<O: Own> {
    pub(crate) wire: Wire,
    pub(crate) source: Source<O>,
}

/// A server, and the hash slots that it serves if it is one of a cluster.
pub(crate) type Serving<O> = (Arc<Server<O>>, Vec<HashSlot>);

impl<O: Own> Server<O> {
    /// Nothing is connected yet.
    pub(crate) fn new(target: Target, channel: Option<Arc<Channel>>, prefix: &Prefix, copies: Option<Copies>) -> Self {
        let wire = Wire::own(&target, channel.clone()).with_prefix(prefix).with_copies(copies);
        Self { wire, source: Source::new(target, channel) }
    }

    /// The server that the connections lead to that were passed in.
    #[cfg(any(feature = "async", feature = "r2d2"))]
    pub(crate) fn lent(lender: Arc<O::Lender>) -> Self {
        Self { wire: Wire::handed_in(), source: Source::Lent(lender, None) }
    }

    /// The one server of a configuration.
    pub(crate) fn of(target: Target, config: &RedisConfig) -> Self {
        Self::new(target, Channel::new(), &config.prefix, config.copies())
    }

    /// The same over connections of its own, or over what was passed in.
    pub(crate) fn another(&self) -> Self {
        Self { wire: self.wire.without_inbox(), source: self.source.another() }
    }
}

impl<O: Own> Clone for Server<O> {
    fn clone(&self) -> Self {
        Self { wire: self.wire.clone(), source: self.source.clone() }
    }
}
