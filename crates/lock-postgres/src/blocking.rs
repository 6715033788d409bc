//! The store for plain threads: the async one on a thread of its own.

use std::sync::Arc;

use lock_core::{BackendError, Effect, ErrorKind};
use lock_host::{Bridge, Bridged};

use crate::PostgresConfig;
use crate::error;
use crate::nonblocking::Postgres;

/// Connects as [`Postgres::connect`] does.
///
/// # Errors
/// Those of [`Postgres::connect`]; `Unavailable` if no thread can be started.
///
/// # Blocking
/// For about two seconds at most for each server.
pub fn connect(config: &PostgresConfig) -> Result<Bridged<Postgres>, BackendError> {
    let no_thread = |failure: std::io::Error| {
        error::new(ErrorKind::Unavailable, Effect::None, "a thread for connections cannot be started")
            .with_source(failure)
    };
    let bridge = Bridge::start().map_err(no_thread)?;
    let store = bridge.block_on(Postgres::connect(config))?;
    Ok(Bridged::new(Arc::new(store), bridge))
}
