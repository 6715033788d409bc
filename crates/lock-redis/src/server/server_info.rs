//! What a client knows about the server at the other end of a connection.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};

use crate::failover::{Failover, GRACE};
use crate::hash_slot::HashSlot;
use crate::script::Counting;

/// The server at the other end of a connection, as its greeting described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    /// The server's identifier for this run.
    pub(crate) run_id: String,
    /// The server's identifier for the history of its data; empty if it has none. It changes with each promotion.
    pub(crate) replid: String,
    /// Its `maxmemory-policy`, if that may drop locks and was asked for.
    pub(crate) evicts: Option<String>,
    /// Whether it is known to be a node of a quorum, if it was greeted as a single Redis.
    pub(crate) is_node: bool,
    /// How many replicas were connected to it. For messages: a primary that was cut off has none.
    pub(crate) replicas: u32,
    /// How tokens are drawn over this connection.
    pub(crate) counting: Counting,
    /// What this client does if the server may have forgotten leases.
    pub(crate) failover: Failover,
    /// What was learned since; `None` if nobody has greeted it.
    pub(crate) learned: Option<Arc<Learned>>,
}

/// What a client learns after the greeting, for all connections that lead to the same server.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The longest ttl of any client, in milliseconds. It only rises.
    longest: AtomicU64,
    /// The hash slots that were verified, if it is a primary of a cluster.
    slots: RwLock<BTreeSet<HashSlot>>,
}

/// What was learned is no part of what a server is.
impl PartialEq for Learned {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Learned {}

impl ServerInfo {
    /// The server behind a connection that the user passed in.
    pub(crate) const UNKNOWN: &'static Self = &Self::assumed(Counting::Clock);

    /// A server that nobody has greeted, if tokens are drawn there like this.
    pub(crate) const fn assumed(counting: Counting) -> Self {
        Self {
            run_id: String::new(),
            replid: String::new(),
            evicts: None,
            is_node: false,
            replicas: 0,
            counting,
            failover: Failover::UNHEEDED,
            learned: None,
        }
    }

    /// The hash slot, if its counter has to be verified first.
    pub(crate) fn unverified(&self, slot: Option<HashSlot>) -> Option<HashSlot> {
        let learned = self.learned.as_ref()?;
        slot.filter(|slot| !learned.slots.read().unwrap_or_else(PoisonError::into_inner).contains(slot))
    }

    /// The counter of this hash slot was verified, where this was the longest ttl of any client, in milliseconds.
    pub(crate) fn verified(&self, slot: HashSlot, longest: u64) {
        self.found(longest);
        self.slots(|slots| _ = slots.insert(slot));
    }

    /// A hash slot has left the primary, or the server is no primary any more. Either may come back with less data.
    pub(crate) fn forget_verified(&self) {
        self.slots(BTreeSet::clear);
    }

    fn slots(&self, change: impl FnOnce(&mut BTreeSet<HashSlot>)) {
        if let Some(learned) = &self.learned {
            change(&mut learned.slots.write().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Some client has this ttl, in milliseconds.
    pub(crate) fn found(&self, longest: u64) {
        self.learned.iter().for_each(|learned| _ = learned.longest.fetch_max(longest, Ordering::AcqRel));
    }

    /// The longest ttl of any client, as far as this one knows, in milliseconds.
    pub(crate) fn longest(&self) -> u64 {
        self.learned.as_ref().map_or(0, |learned| learned.longest.load(Ordering::Acquire))
    }

    /// How long no free lock is granted if the server forgets its leases, and how long they were, while this connection lives.
    pub(crate) fn dwell(&self) -> Duration {
        self.failover.longest().max(Duration::from_millis(self.longest())) + GRACE
    }

    /// Forgets what was verified if a reply shows that a hash slot has left the server.
    pub(crate) fn judge<T>(&self, reply: &RedisResult<T>) {
        let left = |error: &RedisError| matches!(error.kind(), ErrorKind::Server(ServerErrorKind::Moved));
        if reply.as_ref().is_err_and(left) {
            self.forget_verified();
        }
    }

    /// What a counter is verified for: one history of one run.
    pub(crate) fn incarnation(&self) -> String {
        format!("{}:{}", self.run_id, self.replid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_slot_is_remembered_on_its_own() {
        let server_info = ServerInfo { learned: Some(Arc::default()), ..ServerInfo::UNKNOWN.clone() };
        let [one, other] = [b"a", b"b"].map(|key| HashSlot::of(key));
        let has = |slot| server_info.unverified(Some(slot)).is_none();
        server_info.verified(one, 0);
        assert!(has(one) && !has(other));
        server_info.verified(other, 0);
        assert!(has(one) && has(other));
        server_info.forget_verified();
        assert!(!has(one) && !has(other));
    }
}
