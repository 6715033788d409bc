//! The store for plain threads: the async one on a thread of its own.

use std::sync::Arc;

use lock_core::{BackendError, Effect, ErrorKind};
use lock_host::{Bridge, Bridged};

use crate::PostgresConfig;
use crate::error;
use crate::nonblocking::{self, Store};
use crate::source::Source;

/// Connects as [`nonblocking::connect`] does.
///
/// # Errors
/// Those of [`nonblocking::connect`]; `Unavailable` if no thread can be started.
///
/// # Blocking
/// For about two seconds at most for each server.
pub fn connect(config: &PostgresConfig) -> Result<Bridged<Store>, BackendError> {
    over(Source::Own, config)
}

/// The same, with requests over your own pool. The client's own connections to the servers of the configuration notify waiters, renew
/// leases and release locks, however busy the pool is.
///
/// # Errors
/// As [`connect`]; `Config` if the pool leads to another server or database than the configuration.
///
/// # Blocking
/// As [`connect`].
#[cfg(feature = "r2d2")]
pub fn pooled<T: Tls>(pool: Pool<T>, config: &PostgresConfig) -> Result<Bridged<Store>, BackendError> {
    let get = move || -> Result<crate::held::OnThread, r2d2::Error> { Ok(Box::new(pool.get()?)) };
    over(Source::R2d2(Arc::new(get)), config)
}

/// An r2d2 pool of connections with this TLS.
#[cfg(feature = "r2d2")]
pub type Pool<T> = r2d2::Pool<r2d2_postgres::PostgresConnectionManager<T>>;

/// The TLS of a pool's connections, such as `NoTls`. Every type that can be one is one.
#[cfg(feature = "r2d2")]
pub trait Tls:
    postgres::tls::MakeTlsConnect<
        postgres::Socket,
        TlsConnect: Send + postgres::tls::TlsConnect<postgres::Socket, Future: Send>,
        Stream: Send,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

#[cfg(feature = "r2d2")]
impl<T> Tls for T where
    T: postgres::tls::MakeTlsConnect<
            postgres::Socket,
            TlsConnect: Send + postgres::tls::TlsConnect<postgres::Socket, Future: Send>,
            Stream: Send,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

fn over(source: Source, config: &PostgresConfig) -> Result<Bridged<Store>, BackendError> {
    let bridge = bridge()?;
    let store = bridge.block_on(nonblocking::over(source, config))?;
    Ok(Bridged::new(Arc::new(store), bridge))
}

/// The thread that connections belong to.
pub(crate) fn bridge() -> Result<Bridge, BackendError> {
    Bridge::start().map_err(|failure| {
        error::new(ErrorKind::Unavailable, Effect::None, "a thread for connections cannot be started")
            .with_source(failure)
    })
}
