//! The user's clients: connections and managers.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::{Prefix, RequestOrder};
use redis::aio::MultiplexedConnection;
use redis::{Client, ProtocolVersion};

use super::Redis;
use super::lender::{Lender, Lent};
use crate::channel::Channel;
use crate::connect::speaking;
use crate::failure::Failure;
use crate::servers::{Server, Servers};
use crate::target::Target;

impl Redis {
    fn lent(lender: Arc<dyn Lender>) -> Self {
        Self::over(Servers::one(Server::lent(lender)), Vec::new())
    }
}

/// Uses the client only as an address: connections are made and verified here, the first one with the first request.
/// They speak RESP3, whatever the client says, so that waiters can be notified; if the server does not speak it,
/// waiters poll.
impl From<Client> for Redis {
    fn from(client: Client) -> Self {
        let client = speaking(&client, ProtocolVersion::RESP3).unwrap_or(client);
        let server = Server::new(Target::fixed(client), Channel::new(), &Prefix::default(), None);
        Self::over(Servers::one(server), Vec::new())
    }
}

/// A connection of the user's is shared: its copies are the same connection.
#[async_trait]
impl<C: Lent + Clone + 'static> Lender for C {
    fn order(&self) -> RequestOrder {
        RequestOrder::InOrder
    }

    async fn lend(&self) -> Result<Box<dyn Lent>, Failure> {
        Ok(Box::new(self.clone()))
    }
}

impl Lent for MultiplexedConnection {}

impl From<MultiplexedConnection> for Redis {
    fn from(connection: MultiplexedConnection) -> Self {
        Self::lent(Arc::new(connection))
    }
}

#[cfg(feature = "connection-manager")]
impl Lent for redis::aio::ConnectionManager {}

#[cfg(feature = "connection-manager")]
impl From<redis::aio::ConnectionManager> for Redis {
    fn from(manager: redis::aio::ConnectionManager) -> Self {
        Self::lent(Arc::new(manager))
    }
}
