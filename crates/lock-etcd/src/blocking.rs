//! The store for plain threads: the async one, whose connections have a thread of their own anyway.

use std::sync::Arc;

use lock_core::{BackendError, FencingToken, LockName};
use lock_host::Bridged;

use crate::nonblocking::{self, Store};
use crate::{EtcdConfig, HeldKey, base, fence};

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

/// Raises the base of the fencing tokens, so that all later tokens are above this one. Returns false if it is high enough.
///
/// Needed after the servers were restored from an old copy: their revisions count from an old number then. Stop all clients first. One that runs
/// loses its leases at their next renewal; a claim that is in flight may still be granted with an old token.
///
/// # Errors
/// Those of [`nonblocking::connect`], except that a base that is not a number is replaced. `Config` if too few tokens would be left.
///
/// # Blocking
/// For five seconds at most.
pub fn raise_base(config: &EtcdConfig, above: FencingToken) -> Result<bool, BackendError> {
    let bridge = nonblocking::bridge()?;
    bridge.block_on(base::raise(config, bridge.clone(), above))
}

/// Finds the key of the lock that is held with this token, as [`nonblocking::held_key`] does.
///
/// # Errors
/// Those of [`nonblocking::held_key`].
///
/// # Blocking
/// For five seconds at most.
pub fn held_key(config: &EtcdConfig, name: &LockName, token: FencingToken) -> Result<Option<HeldKey>, BackendError> {
    let bridge = nonblocking::bridge()?;
    bridge.block_on(fence::held_key(config, bridge.clone(), name, token))
}
