//! Clients of the user's: connections, managers and pools.

use redis::aio::MultiplexedConnection;
use redis::{Client, ProtocolVersion};

use super::Redis;
use super::source::Source;
use crate::channel::Channel;
use crate::connect::speaking;
use crate::greeting::Role;
use crate::link::Link;
use crate::wire::Wire;

impl Redis {
    fn handed_in(source: Source) -> Self {
        Self { wire: Wire::handed_in(), source, warnings: Vec::new() }
    }
}

/// Takes the client as an address: connections are made and verified here, the first with the first request. They speak RESP3,
/// whatever the client says, so that waiters can be told of their turn; where the server does not, they ask.
impl From<Client> for Redis {
    fn from(client: Client) -> Self {
        let client = speaking(&client, ProtocolVersion::RESP3).unwrap_or(client);
        let channel = Channel::new();
        let wire = Wire::own(&client, channel.clone());
        Self { wire, source: Source::Own(Link::new(client, Role::Alone, channel)), warnings: Vec::new() }
    }
}

impl From<MultiplexedConnection> for Redis {
    fn from(connection: MultiplexedConnection) -> Self {
        Self::handed_in(Source::Connection(connection))
    }
}

#[cfg(feature = "connection-manager")]
impl From<redis::aio::ConnectionManager> for Redis {
    fn from(manager: redis::aio::ConnectionManager) -> Self {
        Self::handed_in(Source::Manager(manager))
    }
}

#[cfg(feature = "deadpool")]
impl From<deadpool_redis::Pool> for Redis {
    fn from(pool: deadpool_redis::Pool) -> Self {
        Self::handed_in(Source::Pool(pool))
    }
}
