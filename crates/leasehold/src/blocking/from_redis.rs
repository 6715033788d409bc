//! Clients over your own Redis clients, for plain threads.

#[cfg(feature = "r2d2")]
use std::fmt;
use std::sync::Arc;

use lock_blocking::Client;
use lock_redis::blocking::Redis;
#[cfg(feature = "r2d2")]
use lock_redis::{RedisConfig, blocking::Pool};

use crate::ConnectError;

/// Makes clients from the Redis clients that a program already has. Import it to call `Client::from_redis`.
pub trait FromRedis: Sized {
    /// Uses a `redis::Client` like a URL, and connects with the first request. A pool is used without further
    /// connections, so the server cannot notify waiters, and they poll.
    ///
    /// # Errors
    /// `Host`.
    fn from_redis(redis: impl Into<Redis>) -> Result<Self, ConnectError>;

    /// Acquires locks through a pool. With [`PoolBuilder::push`], the server notifies waiters; otherwise they poll.
    #[cfg(feature = "r2d2")]
    fn from_pool(pool: Pool) -> PoolBuilder;
}

impl FromRedis for Client {
    fn from_redis(redis: impl Into<Redis>) -> Result<Self, ConnectError> {
        Ok(Self::new(Arc::new(redis.into()))?)
    }

    #[cfg(feature = "r2d2")]
    fn from_pool(pool: Pool) -> PoolBuilder {
        PoolBuilder { pool, push: None }
    }
}

/// A client over a pool that is about to be connected.
#[cfg(feature = "r2d2")]
#[must_use]
pub struct PoolBuilder {
    pool: Pool,
    push: Option<String>,
}

#[cfg(feature = "r2d2")]
impl PoolBuilder {
    /// Opens the client's own connections to the pool's server at this URL. They notify waiters, renew leases and release
    /// locks, however busy the pool is. The URL's options apply to the client.
    pub fn push(mut self, url: impl Into<String>) -> Self {
        self.push = Some(url.into());
        self
    }

    /// Connects. Without a URL, nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid` for the URL; `Backend` if the server cannot be reached, or if the pool leads to another server or database
    /// than the URL; `Host`.
    ///
    /// # Blocking
    /// Until the server has answered, for seconds at most.
    pub fn connect(self) -> Result<Client, ConnectError> {
        let Some(url) = self.push else { return Client::from_redis(self.pool) };
        let config = RedisConfig::from_url(&url)?;
        let redis = Redis::pooled(self.pool, &config)?;
        Ok(Client::builder(Arc::new(redis)).op_timeout(config.op_timeout()).build()?)
    }
}

#[cfg(feature = "r2d2")]
impl fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("PoolBuilder").field("push", &self.push.is_some()).finish_non_exhaustive()
    }
}
