//! What clients and a store like etcd say to each other, besides what all stores do: leases, and versions of entries.

use std::time::Duration;

/// Names a lease with which entries end, and the key of the first entry that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseId(pub u64);

/// The revisions that created an entry and changed it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The one that created it.
    pub created: u64,
    /// The one that changed it last.
    pub modified: u64,
}

/// What a client knows of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its key.
    pub key: LeaseId,
    /// The version that it was read in, if it was.
    pub version: Option<Version>,
    /// The lease that it ends with, or that a change gives it.
    pub lease: LeaseId,
    /// Whether it says that it holds.
    pub is_marked: bool,
}

/// What a transaction has read: the entries of the owners that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The term in which it does.
    pub term: u64,
    /// The entries in their order.
    pub entries: Vec<Option<Known>>,
}

/// What a lease is asked for with: whole seconds, rounded up.
pub(crate) fn whole_seconds(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis().div_ceil(1000) * 1000).unwrap_or(u64::MAX))
}
