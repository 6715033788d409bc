//! The store for plain threads: the async one, whose connection has a thread of its own anyway.

use std::sync::Arc;

use lock_core::{BackendError, FencingToken};
use lock_host::Bridged;

use crate::ZookeeperConfig;
use crate::connect::{connect as open, in_time};
use crate::error;
use crate::nonblocking::{self, Store};
use crate::tokens::Base;

/// Connects as [`nonblocking::connect`] does.
///
/// # Errors
/// Those of [`nonblocking::connect`].
///
/// # Blocking
/// For five seconds at most.
pub fn connect(config: &ZookeeperConfig) -> Result<Bridged<Store>, BackendError> {
    let bridge = crate::sessions::bridge()?;
    let store = bridge.block_on(nonblocking::over(config, bridge.clone()))?;
    Ok(Bridged::new(Arc::new(store), bridge))
}

/// Raises the base of the fencing tokens, so that all later tokens are above this one. Returns false if it is high enough.
///
/// Needed after the servers were restored from an old copy: their transactions count from an old number then. Every client ends its session
/// when it learns of the new base, and loses its leases, so do this while no lock is in use.
///
/// # Errors
/// Those of [`nonblocking::connect`]; `Denied` if the base belongs to another login.
///
/// # Blocking
/// For five seconds at most.
pub fn raise_base(config: &ZookeeperConfig, above: FencingToken) -> Result<bool, BackendError> {
    let (bridge, servers) = (crate::sessions::bridge()?, config.servers());
    let raised = async {
        let client = open(config, &servers).await?;
        let raised = Base::raise(&client, config.readable(), above).await;
        raised.map_err(|failure| error::of_opening(&servers.join(","), failure))
    };
    bridge.block_on(in_time(config, &servers, raised))
}
