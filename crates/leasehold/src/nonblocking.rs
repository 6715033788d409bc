//! Connecting the async facade.

use std::sync::Arc;

use lock_async::{Builder, Client};
use lock_core::AsyncBackend;

use crate::{BackendConfig, ConnectError};

/// Connects to the store that a URL names, for async code on tokio. See [`BackendConfig::from_url`] for the forms.
///
/// `memory:` is a new store for each call, so two such clients do not exclude each other. `memory:NAME` is one store per name.
///
/// # Errors
/// `Invalid` if the URL is not valid, before anything was tried; `Backend` if the store cannot be opened; `Host` if
/// this host cannot start its threads.
///
/// # Cancel safety
/// Dropping the future closes what was opened. Nothing is left at the store.
///
/// # Panics
/// If called outside a tokio runtime.
pub async fn connect(url: &str) -> Result<Client, ConnectError> {
    connect_to(&BackendConfig::from_url(url)?).await
}

/// Connects to the store of a configuration, for async code on tokio.
///
/// # Errors
/// As [`connect`].
///
/// # Cancel safety
/// As [`connect`].
///
/// # Panics
/// If called outside a tokio runtime.
pub async fn connect_to(config: &BackendConfig) -> Result<Client, ConnectError> {
    Ok(builder(config).await?.build()?)
}

/// Opens the store of a configuration, and begins to configure a client of it, for instance with an
/// [`Observer`](crate::observe::Observer).
///
/// # Errors
/// `Backend` if the store cannot be opened. `Builder::build` then returns the `io::Error` of a host that cannot start its
/// threads; `?` converts it to [`ConnectError::Host`].
///
/// # Cancel safety
/// As [`connect`].
///
/// # Panics
/// If called outside a tokio runtime.
pub async fn builder(config: &BackendConfig) -> Result<Builder, ConnectError> {
    // Reports a missing runtime before anything is opened.
    _ = lock_async::runtime();
    Ok(Client::builder(open(config).await?).op_timeout(config.op_timeout()))
}

#[cfg_attr(not(feature = "redis"), expect(clippy::unused_async, reason = "opening a Redis awaits"))]
async fn open(config: &BackendConfig) -> Result<Arc<dyn AsyncBackend>, ConnectError> {
    match *config {
        #[cfg(feature = "memory")]
        BackendConfig::Memory(ref config) => Ok(Arc::new(lock_memory::nonblocking::Memory::open(config))),
        #[cfg(feature = "sqlite")]
        BackendConfig::Sqlite(ref config) => Ok(Arc::new(lock_sqlite::nonblocking::Sqlite::open(config)?)),
        #[cfg(feature = "redis")]
        BackendConfig::Redis(ref config) if config.is_cluster() => {
            Ok(Arc::new(lock_redis::cluster::nonblocking::Cluster::connect(config).await?))
        }
        #[cfg(feature = "redis")]
        BackendConfig::Redis(ref config) => Ok(Arc::new(lock_redis::nonblocking::Redis::connect(config).await?)),
        #[cfg(feature = "redlock")]
        BackendConfig::Redlock(ref config) => Ok(Arc::new(crate::redlock::nonblocking::connect(config).await?.0)),
    }
}
