//! The user's clients and pools.

#[cfg(feature = "r2d2")]
use std::sync::Arc;
#[cfg(feature = "r2d2")]
use std::time::Duration;

use lock_core::Prefix;
#[cfg(feature = "r2d2")]
use lock_core::{BackendError, Operation};
use redis::Client;
#[cfg(feature = "r2d2")]
use redis::Connection;

use super::Redis;
#[cfg(feature = "r2d2")]
use super::source::Source;
#[cfg(feature = "r2d2")]
use crate::RedisConfig;
use crate::channel::Channel;
#[cfg(feature = "r2d2")]
use crate::connect::CONNECT_WITHIN;
#[cfg(feature = "r2d2")]
use crate::failure::Failure;
#[cfg(feature = "r2d2")]
use crate::probe::Probe;
use crate::servers::Server;
#[cfg(feature = "r2d2")]
use crate::span::Span;
use crate::target::Target;
#[cfg(feature = "r2d2")]
use crate::wire::Wire;

/// Uses the client only as an address: connections are made and verified here, the first one with the first request.
impl From<Client> for Redis {
    fn from(client: Client) -> Self {
        Self::one(Server::new(Target::fixed(client), Channel::new(), &Prefix::default(), None))
    }
}

/// The user's pool.
#[cfg(feature = "r2d2")]
pub type Pool = r2d2::Pool<Client>;

#[cfg(feature = "r2d2")]
impl Redis {
    /// A pool for the commands, and connections of its own to the same server: on one, waiters are notified, and on the
    /// others locks are released and the keeper renews, however busy the pool is. The prefix is that of `config`.
    ///
    /// # Errors
    /// As [`Redis::connect`]; `Unsupported` if `config` has `failover=dwell` or `max_ttl`, because nobody verifies the server at the
    /// other end of the pool's connections; `Config` if the pool leads to another server or database than `config`; and the pool's
    /// own error if it provides no connection.
    pub fn pooled(pool: Pool, config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_pooled(pool, config).map_err(|failure| failure.into_error(Operation::Connect))
    }

    fn try_pooled(pool: Pool, config: &RedisConfig) -> Result<Self, Failure> {
        let own = Server::of(Target::of_a_pool(config)?, config);
        let warnings = super::first_greeting(&own, config)?;
        let Source::Own(stack) = &own.source else { return Err(Failure::strange_answer()) };
        let pooled = Server { wire: own.wire.clone(), source: Source::PoolAndStack(pool, Arc::clone(stack)) };
        let probe = Probe::new()?;
        own.answer(&probe.leave(), Span::from_now(CONNECT_WITHIN))?;
        pooled.answer(&probe.take(), Span::from_now(CONNECT_WITHIN))?;
        Ok(Self { warnings, ..Self::one(pooled) })
    }
}

#[cfg(feature = "r2d2")]
impl From<Pool> for Redis {
    fn from(pool: Pool) -> Self {
        Self::one(Server { wire: Wire::handed_in(), source: Source::Pool(pool) })
    }
}

/// Bounds the socket of every new connection of an r2d2 pool, whose health check would otherwise wait forever.
///
/// ```no_run
/// # mod leasehold { pub use lock_redis as redis; }
/// # fn pool() -> Result<(), Box<dyn std::error::Error>> {
/// let timeouts = leasehold::redis::blocking::SocketTimeouts::new(std::time::Duration::from_millis(500));
/// let pool = r2d2::Pool::builder()
///     .connection_customizer(Box::new(timeouts))
///     .build(redis::Client::open("redis://127.0.0.1")?)?;
/// let locks = leasehold::redis::blocking::Redis::from(pool);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "r2d2")]
#[derive(Clone, Copy, Debug)]
pub struct SocketTimeouts(Duration);

#[cfg(feature = "r2d2")]
impl SocketTimeouts {
    /// Lets each read and write take this long, at least a millisecond.
    pub fn new(timeout: Duration) -> Self {
        Self(timeout.max(Duration::from_millis(1)))
    }
}

#[cfg(feature = "r2d2")]
impl r2d2::CustomizeConnection<Connection, redis::RedisError> for SocketTimeouts {
    fn on_acquire(&self, connection: &mut Connection) -> Result<(), redis::RedisError> {
        connection.set_read_timeout(Some(self.0))?;
        connection.set_write_timeout(Some(self.0))
    }
}
