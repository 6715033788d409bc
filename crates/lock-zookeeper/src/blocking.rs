//! The store for plain threads: the async one, whose connection has a thread of its own anyway.

use std::sync::Arc;

use lock_core::{BackendError, Effect, ErrorKind, FencingToken, Operation};
use lock_host::Bridged;
use zookeeper_client::Client;

use crate::ZookeeperConfig;
use crate::connect::{close, connect as open, in_time};
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
/// Needed after the servers were restored from an old copy: their transactions count from an old number then. Stop all clients first. One
/// that runs ends its session when it learns of the new base, and loses its leases; a claim that is in flight may still be granted with an old token.
///
/// # Errors
/// Those of [`nonblocking::connect`]; `Config` if too few tokens would be left; `Denied` if the base belongs to another login.
///
/// # Blocking
/// For five seconds at most.
pub fn raise_base(config: &ZookeeperConfig, above: FencingToken) -> Result<bool, BackendError> {
    let (bridge, servers) = (crate::sessions::bridge()?, config.servers());
    let raised = async {
        let client = open(config, &servers).await?;
        let raised = raise(&client, config, above).await;
        close(client).await;
        raised
    };
    bridge.block_on(in_time(config, &servers, raised))
}

async fn raise(client: &Client, config: &ZookeeperConfig, above: FencingToken) -> Result<bool, BackendError> {
    let failed = |failure| error::of(Operation::Inspect, failure);
    let root = client.check_stat("/").await.map_err(failed)?;
    if !root.is_some_and(|root| Base::has_room(above, root.pzxid)) {
        let message = format!("above {above}, too few tokens are left");
        let told = error::new(Operation::Inspect, ErrorKind::Config, Effect::None, message);
        return Err(told.with_remedy("name the highest token that was in use"));
    }
    Base::raise(client, config.readable(), above).await.map_err(failed)
}
