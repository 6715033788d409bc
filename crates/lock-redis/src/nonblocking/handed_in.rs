//! The user's clients: connections and managers.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, ready};
use lock_core::{Prefix, RequestOrder};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Client, ProtocolVersion};

use super::Redis;
use super::source::{Lender, Lent, Source};
use crate::channel::Channel;
use crate::connect::speaking;
use crate::failure::Failure;
use crate::servers::{Server, Servers};
use crate::target::Target;
use crate::wire::Wire;

impl Redis {
    pub(super) fn lent(lender: impl Lender + 'static) -> Self {
        let source = Source::Lent(Arc::new(lender), None);
        Self::over(Servers::one(Server { wire: Wire::handed_in(), source }), Vec::new())
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

/// A connection of the user's. Its copies are the same connection.
struct Shared<C>(C);

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Lender for Shared<C> {
    fn order(&self) -> RequestOrder {
        RequestOrder::InOrder
    }

    fn lend(&self) -> BoxFuture<'_, Result<Box<dyn Lent>, Failure>> {
        let copy: Box<dyn Lent> = Box::new(Self(self.0.clone()));
        ready(Ok(copy)).boxed()
    }
}

impl<C: ConnectionLike + Send + Sync> Lent for Shared<C> {
    fn connection(&mut self) -> &mut (dyn ConnectionLike + Send) {
        &mut self.0
    }
}

impl From<MultiplexedConnection> for Redis {
    fn from(connection: MultiplexedConnection) -> Self {
        Self::lent(Shared(connection))
    }
}

#[cfg(feature = "connection-manager")]
impl From<redis::aio::ConnectionManager> for Redis {
    fn from(manager: redis::aio::ConnectionManager) -> Self {
        Self::lent(Shared(manager))
    }
}
