//! A pool of the user's.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, Connection, ConnectionLike};

use super::stack::{Asks, Heard, Lender};
use crate::classify::pool_failure;
use crate::connect::bound;
use crate::failure::Failure;
use crate::server::server_info::ServerInfo;
use crate::span::Span;

/// How long each read or write may take when the pool checks a connection before its next use. No request's time limit bounds that.
const CHECKED_WITHIN: Duration = Duration::from_secs(1);

/// The user's pool.
pub type Pool = r2d2::Pool<Client>;

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
        // Fails only if the connection has ended, which the pool notices.
        bound(&connection, CHECKED_WITHIN).ok();
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
