//! The store for plain threads: the async one on a thread of its own.

use std::sync::Arc;

use lock_core::{BackendError, Effect, ErrorKind};
use lock_host::{Bridge, Bridged};
#[cfg(feature = "blocking")]
pub use mysql::Pool;

use crate::MysqlConfig;
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
pub fn connect(config: &MysqlConfig) -> Result<Bridged<Store>, BackendError> {
    over(Source::Own, config)
}

/// The same, with requests over your own pool. The client's own connections to the servers of the configuration poll for waiters, renew
/// leases and release locks, however busy the pool is.
///
/// # Errors
/// As [`connect`]; `Config` if the pool leads to another server or database than the configuration.
///
/// # Blocking
/// As [`connect`].
#[cfg(feature = "blocking")]
pub fn pooled(pool: Pool, config: &MysqlConfig) -> Result<Bridged<Store>, BackendError> {
    over(Source::Threads(pool), config)
}

fn over(source: Source, config: &MysqlConfig) -> Result<Bridged<Store>, BackendError> {
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
