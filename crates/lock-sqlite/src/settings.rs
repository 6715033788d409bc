//! What all connections of one client share.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use lock_core::{Ability, Capabilities, Durability, Isolation, Location, LockName, ModeKind, Prefix, Waiting};

use crate::config::SqliteConfig;
use crate::error::BACKEND;
use crate::timing::Timing;

/// One sweep for this many grants and tombstones, which add a row each.
///
/// Chosen: a sweep that finds nothing takes as long as the statements of ten grants.
const SWEEP_EVERY: u32 = 64;

/// How many rows a sweep reads in each of its two places: bounded, and far more than were added since the last sweep.
pub(crate) const SWEEP_ROWS: u32 = 4 * SWEEP_EVERY;

/// Of the async and the blocking backend; each adds the order of its requests.
pub(crate) const CAPABILITIES: Capabilities = Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::Durable)
    .with_isolation(Isolation::Isolated)
    .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
    .with_abilities(Ability::ALL)
    .with_shared_counter();

/// Where the store is, and by which clock its leases are timed.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Absolute, so that the file stays the same wherever the process goes, unless the working directory was not known.
    pub(crate) path: PathBuf,
    pub(crate) prefix: Prefix,
    pub(crate) timing: Timing,
    new_rows: AtomicU32,
}

impl Settings {
    pub(crate) fn new(config: &SqliteConfig, timing: Timing) -> Self {
        let path = std::path::absolute(&config.path).unwrap_or_else(|_| config.path.clone());
        Self { path, prefix: config.prefix.clone(), timing, new_rows: AtomicU32::new(0) }
    }

    /// The file is named by its path after symbolic links, which all processes of the machine share.
    pub(crate) fn locate(&self, name: &LockName) -> Location {
        let path = fs::canonicalize(&self.path);
        let path = path.as_deref().unwrap_or(&self.path);
        Location { store: format!("{BACKEND}:{}", path.display()), key: self.prefix.key(name.as_str()) }
    }

    /// Whether the new row that is asked for is one that also clears old ones. The first one is: a client may add no
    /// second one.
    pub(crate) fn is_sweep_due(&self) -> bool {
        self.new_rows.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP_EVERY)
    }
}
