//! How much of everything is measured.

use std::time::Duration;

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) warm_up: Duration,
    /// One round of pairs or hand-overs.
    pub(crate) span: Duration,
    /// Rounds of those.
    pub(crate) rounds: u32,
    /// Rounds of one contended lock.
    pub(crate) contended_rounds: u32,
    /// Rounds of everything else.
    pub(crate) long_rounds: u32,
    /// How many leases are held.
    pub(crate) leases: u32,
    /// For how long.
    pub(crate) held_for: Duration,
    /// How many waiters the memory is measured with.
    pub(crate) waiters: u32,
    /// For how long a node is broken.
    pub(crate) broken_for: Duration,
    /// For how long a waiter is watched.
    pub(crate) watched_for: Duration,
    /// How many primaries are replaced.
    pub(crate) fail_overs: u32,
}

impl Scale {
    pub(crate) const FULL: Self = Self {
        warm_up: Duration::from_millis(200),
        span: Duration::from_secs(1),
        rounds: 7,
        contended_rounds: 5,
        long_rounds: 3,
        leases: 10_000,
        held_for: Duration::from_secs(20),
        waiters: 2_000,
        broken_for: Duration::from_secs(4),
        watched_for: Duration::from_secs(5),
        fail_overs: 20,
    };
    pub(crate) const QUICK: Self = Self {
        warm_up: Duration::from_millis(50),
        span: Duration::from_millis(250),
        rounds: 5,
        contended_rounds: 2,
        long_rounds: 1,
        leases: 10_000,
        held_for: Duration::from_secs(8),
        waiters: 2_000,
        broken_for: Duration::from_secs(2),
        watched_for: Duration::from_secs(2),
        fail_overs: 3,
    };
}
