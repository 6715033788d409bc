//! The user's clients and pools.

#[cfg(feature = "r2d2")]
use std::time::Duration;

#[cfg(feature = "r2d2")]
use lock_core::{BackendError, Operation};
use redis::Client;
#[cfg(feature = "r2d2")]
use redis::Connection;

use super::Redis;
#[cfg(feature = "r2d2")]
use super::source::Source;
use super::stack::Stack;
#[cfg(feature = "r2d2")]
use crate::RedisConfig;
#[cfg(feature = "r2d2")]
use crate::channel::Channel;
#[cfg(feature = "r2d2")]
use crate::connect::CONNECT_WITHIN;
use crate::failover::Failover;
#[cfg(feature = "r2d2")]
use crate::probe::Probe;
use crate::server::greeting::Role;
use crate::target::Target;
#[cfg(feature = "r2d2")]
use crate::wire::Wire;

/// Uses the client only as an address: connections are made and verified here, the first one with the first request.
impl From<Client> for Redis {
    fn from(client: Client) -> Self {
        Self::own(Stack::new(Target::fixed(client), Role::Alone(Failover::UNHEEDED)))
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
        let (stack, warnings) = Self::stack(config, Target::of_a_pool(config))?;
        let channel = Channel::new();
        let stack = stack.with_listener(channel.clone());
        let wire = Wire::own(stack.target(), channel).with_prefix(config.own_prefix());
        let wire = wire.with_copies(config.copies());
        let pooled = Self { wire, source: Source::PoolAndStack(pool, Box::new(stack)), warnings };
        let probe = Probe::new().map_err(|failure| failure.into_error(Operation::Connect))?;
        pooled.another().check_disk(config).map_err(|failure| failure.into_error(Operation::Connect))?;
        pooled.another().ask(probe.leave(), CONNECT_WITHIN)?;
        pooled.ask(probe.take(), CONNECT_WITHIN)?;
        Ok(pooled)
    }
}

#[cfg(feature = "r2d2")]
impl From<Pool> for Redis {
    fn from(pool: Pool) -> Self {
        Self { wire: Wire::handed_in(), source: Source::Pool(pool), warnings: Vec::new() }
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
