//! Clients over your own PostgreSQL pools, for tokio.

use std::sync::Arc;

use lock_async::Client;
use lock_postgres::PostgresConfig;
use lock_postgres::nonblocking::pooled;

use crate::ConnectError;

/// Makes clients from the pools that a program already has. Import it to call `Client::from_pool`.
pub trait FromPostgres: Sized {
    /// Acquires locks through a pool. The client's own connections to the servers of the URL notify waiters, renew leases and release locks,
    /// however busy the pool is. The URL's options apply to the client.
    ///
    /// # Errors
    /// `Invalid` for the URL; `Backend` if the server cannot be reached, or if the pool leads to another server or database than the URL;
    /// `Host`.
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened. The tables may have been made.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    fn from_pool(pool: deadpool_postgres::Pool, url: &str) -> impl Future<Output = Result<Self, ConnectError>> + Send;
}

impl FromPostgres for Client {
    async fn from_pool(pool: deadpool_postgres::Pool, url: &str) -> Result<Self, ConnectError> {
        let config = PostgresConfig::from_url(url)?;
        let op_timeout = lock_core::StoreConfig::op_timeout(&config);
        let postgres = pooled(pool, &config).await?;
        Ok(Self::builder(Arc::new(postgres)).op_timeout(op_timeout).build()?)
    }
}
