//! What all connections of one client share.

use std::path::PathBuf;

use lock_core::{Capabilities, Durability, Isolation, Prefix, Waiting};

use crate::config::SqliteConfig;
use crate::error::BACKEND;
use crate::timing::Timing;

/// Of the async and the blocking backend; each adds the order of its requests.
pub(crate) const CAPABILITIES: Capabilities = Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::Durable)
    .with_isolation(Isolation::Isolated)
    .with_shared_counter();

/// Where the store is, and by which clock its leases are timed.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) prefix: Prefix,
    pub(crate) timing: Timing,
}

impl Settings {
    pub(crate) fn new(config: &SqliteConfig, timing: Timing) -> Self {
        Self { path: config.path.clone(), prefix: config.prefix.clone(), timing }
    }
}
