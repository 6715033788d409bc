//! A pool of the user's.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use lock_core::{BackendError, Operation, RequestOrder};
use redis::aio::ConnectionLike;

use super::Redis;
use super::source::{Lender, Lent, Source};
use crate::RedisConfig;
use crate::classify::pool_failure;
use crate::connect::CONNECT_WITHIN;
use crate::failure::Failure;
use crate::probe::Probe;
use crate::servers::{Server, Servers};
use crate::span::Span;
use crate::target::Target;

impl Redis {
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
    pub async fn pooled(pool: deadpool_redis::Pool, config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_pooled(pool, config).await.map_err(|failure| failure.into_error(Operation::Connect))
    }

    async fn try_pooled(pool: deadpool_redis::Pool, config: &RedisConfig) -> Result<Self, Failure> {
        let own = Server::of(Target::of_a_pool(config)?, config);
        let (own, warnings) = super::client::connected(own, config).await?;
        let source = Source::Lent(Arc::new(pool), own.source.link().cloned());
        let pooled = Server { wire: own.wire.clone(), source };
        let probe = Probe::new()?;
        own.answer(&probe.leave(), Span::from_now(CONNECT_WITHIN)).await?;
        pooled.answer(&probe.take(), Span::from_now(CONNECT_WITHIN)).await?;
        Ok(Self::over(Servers::one(pooled), warnings))
    }
}

impl From<deadpool_redis::Pool> for Redis {
    fn from(pool: deadpool_redis::Pool) -> Self {
        Self::lent(pool)
    }
}

impl Lender for deadpool_redis::Pool {
    fn order(&self) -> RequestOrder {
        RequestOrder::Unordered
    }

    fn lend(&self) -> BoxFuture<'_, Result<Box<dyn Lent>, Failure>> {
        let connection =
            self.get().map(|got| Ok(Box::new(got.map_err(|error| pool_failure(&error))?) as Box<dyn Lent>));
        connection.boxed()
    }
}

impl Lent for deadpool_redis::Connection {
    fn connection(&mut self) -> &mut (dyn ConnectionLike + Send) {
        self
    }

    fn end(self: Box<Self>) {
        drop(Self::take(*self));
    }
}
