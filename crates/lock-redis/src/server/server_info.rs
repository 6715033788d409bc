//! What a client knows about the server at the other end of a connection.

use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};

use super::learned::Learned;
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

impl ServerInfo {
    /// The server behind a connection that the user passed in.
    #[cfg(any(feature = "async", feature = "r2d2", test))]
    pub(crate) const UNKNOWN: &'static Self = &Self::assumed(Counting::Clock);

    /// A server that nobody has greeted, if tokens are drawn there like this.
    #[cfg(any(feature = "async", feature = "r2d2", test))]
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
        slot.filter(|slot| self.learned.as_ref().is_some_and(|learned| !learned.has(*slot)))
    }

    /// The counter of this hash slot was verified, where this was the longest ttl of any client, in milliseconds.
    pub(crate) fn verified(&self, slot: HashSlot, longest: u64) {
        self.learned.iter().for_each(|learned| {
            learned.add(slot);
            learned.raise(longest);
        });
    }

    /// Another connection leads to the same server. It may have found more.
    pub(crate) fn also_found(&self, other: &Self) {
        self.learned.iter().for_each(|learned| learned.raise(other.longest()));
    }

    /// The longest ttl of any client, as far as this one knows, in milliseconds.
    fn longest(&self) -> u64 {
        self.learned.as_ref().map_or(0, |learned| learned.longest())
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

    /// A hash slot has left the server.
    pub(crate) fn forget_verified(&self) {
        self.learned.iter().for_each(|learned| learned.clear());
    }

    /// What a counter is verified for: one history of one run.
    pub(crate) fn incarnation(&self) -> String {
        format!("{}:{}", self.run_id, self.replid)
    }
}
