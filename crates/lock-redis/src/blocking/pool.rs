//! A pool of the user's.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{BackendError, Operation};
use redis::{Client, Connection, ConnectionLike};

use super::Redis;
use super::source::{Lender, Source};
use super::stack::{Asks, Heard};
use crate::RedisConfig;
use crate::classify::pool_failure;
use crate::connect::{CONNECT_WITHIN, bound};
use crate::failure::Failure;
use crate::probe::Probe;
use crate::server::server_info::ServerInfo;
use crate::servers::{Server, Servers};
use crate::span::Span;
use crate::target::Target;
use crate::wire::Wire;

/// The user's pool.
pub type Pool = r2d2::Pool<Client>;

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
        let (own, warnings) = super::client::connected(own, config)?;
        let source = Source::Lent(Arc::new(pool), own.source.stack().cloned());
        let pooled = Server { wire: own.wire.clone(), source };
        let probe = Probe::new()?;
        own.answer(&probe.leave(), Span::from_now(CONNECT_WITHIN))?;
        pooled.answer(&probe.take(), Span::from_now(CONNECT_WITHIN))?;
        Ok(Self::over(Servers::one(pooled), warnings))
    }
}

impl From<Pool> for Redis {
    fn from(pool: Pool) -> Self {
        let source = Source::Lent(Arc::new(pool), None);
        Self::over(Servers::one(Server { wire: Wire::handed_in(), source }), Vec::new())
    }
}

impl Lender for Pool {
    fn ask(&self, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure> {
        let server_info = Arc::new(ServerInfo::UNKNOWN.clone());
        let call = asks(&server_info)?;
        let mut connection = self.get_timeout(span.left()).map_err(|error| pool_failure(&error))?;
        let reply = bound(&connection, span.left()).and_then(|()| match call.wait {
            None => call.command.query(&mut *connection),
            Some(_) => {
                let both = call.pipeline();
                call.reply_of(connection.req_packed_commands(&both.get_packed_pipeline(), 0, both.len())?)
            }
        });
        Ok(Heard { reply, server_info })
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
#[derive(Clone, Copy, Debug)]
pub struct SocketTimeouts(Duration);

impl SocketTimeouts {
    /// Lets each read and write take this long, at least a millisecond.
    pub fn new(timeout: Duration) -> Self {
        Self(timeout.max(Duration::from_millis(1)))
    }
}

impl r2d2::CustomizeConnection<Connection, redis::RedisError> for SocketTimeouts {
    fn on_acquire(&self, connection: &mut Connection) -> Result<(), redis::RedisError> {
        connection.set_read_timeout(Some(self.0))?;
        connection.set_write_timeout(Some(self.0))
    }
}
