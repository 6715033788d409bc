//! The store for plain threads: the async one, whose connections have a thread of their own anyway.

use std::sync::Arc;

use lock_core::BackendError;
use lock_host::Bridged;

use crate::EtcdConfig;
use crate::nonblocking::{self, Store};

/// Connects as [`nonblocking::connect`] does.
///
/// # Errors
/// Those of [`nonblocking::connect`].
///
/// # Blocking
/// For five seconds at most.
pub fn connect(config: &EtcdConfig) -> Result<Bridged<Store>, BackendError> {
    let bridge = nonblocking::bridge()?;
    let store = bridge.block_on(nonblocking::over(config, bridge.clone()))?;
    Ok(Bridged::new(Arc::new(store), bridge))
}
