//! Connecting the async facade.

use crate::{BackendConfig, ConnectError};
use lock_async::{Builder, Client};

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

/// Opens the store of a configuration, and returns the builder of a client, for instance to set an
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
    Ok(Client::builder(config.open_async().await?).op_timeout(config.op_timeout()))
}
