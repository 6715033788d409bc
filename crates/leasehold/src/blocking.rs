//! The blocking facade: the same locks for plain threads, without an async runtime.

#[cfg(feature = "mysql")]
mod from_mysql;
#[cfg(feature = "r2d2-postgres")]
mod from_postgres;
#[cfg(feature = "redis")]
mod from_redis;

use crate::{BackendConfig, ConnectError};

#[cfg(feature = "mysql")]
pub use from_mysql::FromMysql;
#[cfg(feature = "r2d2-postgres")]
pub use from_postgres::FromPostgres;
#[cfg(feature = "redis")]
pub use from_redis::FromRedis;
#[cfg(feature = "r2d2")]
pub use from_redis::PoolBuilder;
pub use lock_blocking::{
    AnyGuard, AnyLock, Builder, CancelToken, Client, Guard, Latch, LossWatch, Mutex, NamedLock, PermitGuard, ReadGuard,
    ReadLock, RwLock, Semaphore, SharedGuard,
};
pub use lock_kit::blocking::{
    All, AllGuard, AllWatch, Cache, Degrading, DegradingGuard, Election, Job, Kit, Leaders, Leadership, Reentrant,
    ReentrantGuard, Run, SingleFlight, all,
};

/// Connects to the store that a URL names, for plain threads. See [`BackendConfig::from_url`] for the forms.
///
/// `memory:` is a new store for each call, so two such clients do not exclude each other. `memory:NAME` is one store per name.
///
/// # Errors
/// `Invalid` if the URL is not valid, before anything was tried; `Backend` if the store cannot be opened; `Host` if
/// this host cannot start its threads.
///
/// # Blocking
/// Until the store has answered, a few seconds at most.
pub fn connect(url: &str) -> Result<Client, ConnectError> {
    connect_to(&BackendConfig::from_url(url)?)
}

/// Connects to the store of a configuration, for plain threads.
///
/// # Errors
/// As [`connect`].
///
/// # Blocking
/// As [`connect`].
pub fn connect_to(config: &BackendConfig) -> Result<Client, ConnectError> {
    Ok(builder(config)?.build()?)
}

/// Opens the store of a configuration, and returns the builder of a client, for instance to set an
/// [`Observer`](crate::observe::Observer).
///
/// # Errors
/// `Backend` if the store cannot be opened. `Builder::build` then returns the `io::Error` of a host that cannot start its
/// threads; `?` converts it to [`ConnectError::Host`].
///
/// # Blocking
/// As [`connect`].
pub fn builder(config: &BackendConfig) -> Result<Builder, ConnectError> {
    Ok(Client::builder(config.open_blocking()?).op_timeout(config.op_timeout()))
}
