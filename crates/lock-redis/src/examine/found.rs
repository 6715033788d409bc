//! What one server has said.

use std::time::Duration;

/// What a server says about itself, and how it is used.
pub(super) struct Examination {
    /// Its address, without user and password.
    pub(super) server: String,
    /// What it is, such as `redis 7.2.4` or `valkey 8.1.0`.
    pub(super) version: String,
    /// How many replicas are connected to it.
    pub(super) replicas: u32,
    /// How many of them a grant waits for, if the configuration says.
    pub(super) awaited_replicas: Option<u32>,
    /// What it does when its memory is full: its `maxmemory-policy`.
    pub(super) eviction_policy: String,
    /// Whether the configuration says that operators know about a policy that may drop locks.
    pub(super) eviction_is_allowed: bool,
    /// Its limit of memory in bytes; `None` if it has none.
    pub(super) memory_limit: Option<u64>,
    /// What it keeps its data with.
    pub(super) persistence: Persistence,
    /// For how long it grants free locks to nobody who heeds that; `None` if it grants them, and for a server of a cluster, where each
    /// hash slot has an answer of its own.
    pub(super) dwell: Option<Duration>,
    /// How far its clock is ahead of this machine's, or behind it if negative, in milliseconds.
    pub(super) clock_ahead_ms: i64,
    /// How long requests took, the shortest first.
    pub(super) round_trips: Vec<Duration>,
    /// Who can read what is sent to it.
    pub(super) exposure: Exposure,
    /// Whether the configuration has a password.
    pub(super) uses_password: bool,
}

/// What a server keeps its data with over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// A log of all writes.
    AppendOnly,
    /// A snapshot now and then: the newest leases are lost.
    Snapshots,
    /// Nothing.
    Nothing,
    /// It has no log, and does not say whether it makes snapshots.
    Unsaid,
}

/// Who can read what is sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exposure {
    /// It is on this machine.
    Local,
    /// It is encrypted.
    Encrypted,
    /// Anyone on the network in between.
    Plain,
}
