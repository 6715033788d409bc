//! The user's clients: connections, managers and pools.

use std::sync::Arc;

use lock_core::Prefix;
#[cfg(feature = "deadpool")]
use lock_core::{BackendError, Operation};
use redis::aio::MultiplexedConnection;
use redis::{Client, ProtocolVersion};

use super::Redis;
use super::source::Source;
#[cfg(feature = "deadpool")]
use crate::RedisConfig;
use crate::channel::Channel;
#[cfg(feature = "deadpool")]
use crate::connect::CONNECT_WITHIN;
use crate::connect::speaking;
#[cfg(feature = "deadpool")]
use crate::failure::Failure;
#[cfg(feature = "deadpool")]
use crate::probe::Probe;
use crate::servers::{Server, Servers};
#[cfg(feature = "deadpool")]
use crate::span::Span;
use crate::target::Target;
use crate::wire::Wire;

impl Redis {
    fn handed_in(source: Source) -> Self {
        Self::over(Servers::one(Server { wire: Wire::handed_in(), source }), Vec::new())
    }

    /// A pool for the commands, and connections of its own to the same server: on one, waiters are notified and locks are
    /// released, and on the other the keeper renews, however busy the pool is. The prefix is that of `config`.
    ///
    /// # Errors
    /// As [`Redis::connect`]; `Unsupported` if `config` has `failover=dwell` or `max_ttl`, because nobody verifies the server at the
    /// other end of the pool's connections; `Config` if the pool leads to another server or database than `config`; and the pool's
    /// own error if it provides no connection.
    ///
    /// # Cancel safety
    /// Can be dropped at any point; a key that expires after ten seconds may be left.
    #[cfg(feature = "deadpool")]
    pub async fn pooled(pool: deadpool_redis::Pool, config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_pooled(pool, config).await.map_err(|failure| failure.into_error(Operation::Connect))
    }

    async fn try_pooled(pool: deadpool_redis::Pool, config: &RedisConfig) -> Result<Self, Failure> {
        let own = Server::of(Target::of_a_pool(config)?, config);
        let (own, warnings) = super::connected(own, config).await?;
        let Source::Own(link) = &own.source else { return Err(Failure::strange_answer()) };
        let pooled = Server { wire: own.wire.clone(), source: Source::PoolAndLink(pool, Arc::clone(link)) };
        let probe = Probe::new()?;
        own.answer(&probe.leave(), Span::from_now(CONNECT_WITHIN)).await?;
        pooled.answer(&probe.take(), Span::from_now(CONNECT_WITHIN)).await?;
        Ok(Self::over(Servers::one(pooled), warnings))
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

impl From<MultiplexedConnection> for Redis {
    fn from(connection: MultiplexedConnection) -> Self {
        Self::handed_in(Source::HandedIn(Arc::new(connection)))
    }
}

#[cfg(feature = "connection-manager")]
impl From<redis::aio::ConnectionManager> for Redis {
    fn from(manager: redis::aio::ConnectionManager) -> Self {
        Self::handed_in(Source::HandedIn(Arc::new(manager)))
    }
}

#[cfg(feature = "deadpool")]
impl From<deadpool_redis::Pool> for Redis {
    fn from(pool: deadpool_redis::Pool) -> Self {
        Self::handed_in(Source::Pool(pool))
    }
}
