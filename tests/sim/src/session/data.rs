//! What the leader stores.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lock_core::Moment;

use crate::network::ConnId;
use crate::one::{LIVES, SessionId, TICK};
use crate::ordered::Entries;

/// What it stores.
#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    /// How often it was changed.
    pub(super) version: u64,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) ended: BTreeSet<SessionId>,
    pub(super) entries: Entries<SessionId>,
    pub(super) counter: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    /// When the leader has last heard of it.
    pub(super) heard: Moment,
    /// The connection that it is on. What arrives over another one is refused.
    pub(super) conn: ConnId,
    /// The latest version that its client has seen something of.
    pub(super) seen: u64,
    /// Whether it refuses to release anything.
    pub(super) refuses: bool,
}

impl Session {
    /// When the leader ends it, unless it hears of it before: with the next tick after its timeout.
    pub(super) fn ends(&self, timeout: Duration) -> Moment {
        let tick = u64::try_from(TICK.as_nanos()).unwrap_or(u64::MAX);
        Moment::from_nanos((self.heard + timeout).as_nanos().div_ceil(tick) * tick)
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.heard + LIVES <= now
    }
}
