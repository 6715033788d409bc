//! What a page is told.

use lock_core::inspect::Entry;
use serde::Serialize;
use serde_json::Value;

use crate::look::{natural, row};
use crate::redlock::Status;
use crate::watching::Line;

/// How many locks a page is told of at most. Chosen: more than a person reads, and a page still draws them in a moment.
const LOCKS_MAX: usize = 2000;

/// All that a page shows.
#[derive(Debug, Serialize)]
pub(super) struct Snapshot<'a> {
    /// When this was written.
    pub(super) time: String,
    /// The store, without user and password.
    pub(super) store: &'a str,
    pub(super) pattern: &'a str,
    /// What is shown in place of the remaining time of a lease that has none.
    pub(super) endless: &'static str,
    /// How long ago the locks were seen.
    pub(super) age_ms: u64,
    /// Why the store cannot be read now; null if it can.
    pub(super) trouble: Option<&'a str>,
    /// How many locks are held, which may be more than are listed.
    pub(super) held: usize,
    pub(super) locks: Vec<Value>,
    /// The nodes of a quorum; null for another store, or if they could not be asked.
    pub(super) quorum: Option<Status<'a>>,
    /// What happened, the latest event first.
    pub(super) history: Vec<Line<'a>>,
}

/// The locks in the order in which people read their names.
pub(super) fn rows(entries: &[Entry]) -> Vec<Value> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|a, b| natural(a.name.as_str(), b.name.as_str()));
    entries.into_iter().take(LOCKS_MAX).map(row).collect()
}
