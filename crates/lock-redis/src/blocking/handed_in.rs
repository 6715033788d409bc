//! Clients and pools of the user's.

#[cfg(feature = "r2d2")]
use std::time::Duration;

use redis::Client;
#[cfg(feature = "r2d2")]
use redis::Connection;

use super::Redis;
#[cfg(feature = "r2d2")]
use super::source::Source;
use crate::greeting::Role;
use crate::stack::Stack;
#[cfg(feature = "r2d2")]
use crate::wire::Wire;

/// Takes the client as an address: connections are made and verified here, the first with the first request.
impl From<Client> for Redis {
    fn from(client: Client) -> Self {
        Self::own(Stack::new(client, Role::Alone))
    }
}

#[cfg(feature = "r2d2")]
impl From<r2d2::Pool<Client>> for Redis {
    fn from(pool: r2d2::Pool<Client>) -> Self {
        Self { wire: Wire::handed_in(), source: Source::Pool(pool), warnings: Vec::new() }
    }
}

/// Bounds the socket of every new connection of an r2d2 pool, whose health check would otherwise wait for ever.
///
/// ```no_run
/// # fn pool() -> Result<(), Box<dyn std::error::Error>> {
/// let timeouts = lock_redis::blocking::SocketTimeouts::new(std::time::Duration::from_millis(500));
/// let pool = r2d2::Pool::builder()
///     .connection_customizer(Box::new(timeouts))
///     .build(redis::Client::open("redis://127.0.0.1")?)?;
/// let locks = lock_redis::blocking::Redis::from(pool);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "r2d2")]
#[derive(Clone, Copy, Debug)]
pub struct SocketTimeouts(Duration);

#[cfg(feature = "r2d2")]
impl SocketTimeouts {
    /// Lets each read and write take so long, at least a millisecond.
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
