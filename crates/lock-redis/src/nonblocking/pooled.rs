//! The user's pool, with the client's own connections beside it. Compiled for threads as well.

use std::sync::Arc;

use lock_core::{BackendError, Operation};

use super::client::connected;
use super::{Lender, Pool, Redis, both};
use crate::RedisConfig;
use crate::connect::CONNECT_WITHIN;
use crate::failure::Failure;
use crate::probe::Probe;
use crate::servers::{Server, Servers, Source};
use crate::span::Span;
use crate::target::Target;

#[both]
impl Redis {
    /// A pool for the commands, and connections of its own to the same server, over which waiters are notified, locks are released and
    /// the keeper renews, however busy the pool is. The prefix is that of `config`.
    ///
    /// # Errors
    /// As [`Redis::connect`]; `Unsupported` if `config` has `failover=dwell` or `max_ttl`, because nobody verifies the server at the
    /// other end of the pool's connections; `Config` if the pool leads to another server or database than `config`; and the pool's
    /// own error if it provides no connection.
    ///
    /// # Cancel safety
    /// Can be dropped at any point; a key that expires after ten seconds may be left.
    pub async fn pooled(pool: Pool, config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_pooled(Arc::new(pool), config).await.map_err(|failure| failure.into_error(Operation::Connect))
    }

    async fn try_pooled(pool: Arc<dyn Lender>, config: &RedisConfig) -> Result<Self, Failure> {
        let own = Server::of(Target::of_a_pool(config)?, config);
        let (own, warnings) = connected(own, config).await?;
        let source = Source::Lent(pool, own.source.own().cloned());
        let pooled = Server { wire: own.wire.clone(), source };
        let probe = Probe::new()?;
        own.answer(&probe.leave(), Span::from_now(CONNECT_WITHIN)).await?;
        pooled.answer(&probe.take(), Span::from_now(CONNECT_WITHIN)).await?;
        Ok(Self::over(Servers::one(pooled), warnings))
    }
}

impl From<Pool> for Redis {
    fn from(pool: Pool) -> Self {
        let lender: Arc<dyn Lender> = Arc::new(pool);
        Self::over(Servers::one(Server::lent(lender)), Vec::new())
    }
}
