//! The user's clients: connections and managers.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::RequestOrder;
use redis::aio::MultiplexedConnection;

use super::lender::{Lender, Lent};
use super::{Connections, Redis};
use crate::failure::Failure;
use crate::servers::{Server, Servers};

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
        Self::over(Servers::one(Server::<Connections>::lent(Arc::new(connection))), Vec::new())
    }
}

#[cfg(feature = "connection-manager")]
impl Lent for redis::aio::ConnectionManager {}

#[cfg(feature = "connection-manager")]
impl From<redis::aio::ConnectionManager> for Redis {
    fn from(manager: redis::aio::ConnectionManager) -> Self {
        Self::over(Servers::one(Server::<Connections>::lent(Arc::new(manager))), Vec::new())
    }
}
