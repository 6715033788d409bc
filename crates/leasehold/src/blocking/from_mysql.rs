//! Clients over your own MySQL pools, for plain threads.

use std::sync::Arc;

use lock_blocking::Client;
use lock_mysql::MysqlConfig;
use lock_mysql::blocking::{Pool, pooled};

use crate::ConnectError;

/// Makes clients from the pools that a program already has. Import it to call `Client::from_pool`.
pub trait FromMysql: Sized {
    /// Acquires locks through a pool. The client's own connections to the servers of the URL poll for waiters, renew leases and release locks,
    /// however busy the pool is. The URL's options apply to the client.
    ///
    /// # Errors
    /// `Invalid` for the URL; `Backend` if the server cannot be reached, or if the pool leads to another server or database than the URL;
    /// `Host`.
    ///
    /// # Blocking
    /// Until the server has answered, a few seconds at most.
    fn from_pool(pool: Pool, url: &str) -> Result<Self, ConnectError>;
}

impl FromMysql for Client {
    fn from_pool(pool: Pool, url: &str) -> Result<Self, ConnectError> {
        let config = MysqlConfig::from_url(url)?;
        let op_timeout = lock_core::StoreConfig::op_timeout(&config);
        Ok(Self::builder(Arc::new(pooled(pool, &config)?)).op_timeout(op_timeout).build()?)
    }
}
