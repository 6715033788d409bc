//! What a client knows about the server at the other end of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};

use super::verified::Verified;
use crate::failover::{Failover, GRACE};
use crate::hash_slot::HashSlot;
use crate::script::Counting;

/// Whether a server belongs to a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// No quorum is known.
    OnItsOwn,
    /// It is a node of one.
    InQuorum,
}

/// The longest ttl of any client, in milliseconds. It only rises.
#[derive(Clone, Debug)]
pub(crate) struct Longest(Option<Arc<AtomicU64>>);

impl Longest {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self(None);

    pub(crate) fn found(millis: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(millis))))
    }

    fn raise(&self, millis: u64) {
        self.0.iter().for_each(|longest| _ = longest.fetch_max(millis, Ordering::AcqRel));
    }

    fn millis(&self) -> u64 {
        self.0.as_ref().map_or(0, |longest| longest.load(Ordering::Acquire))
    }
}

/// What clients use is no part of what a server is.
impl PartialEq for Longest {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Longest {}

/// The server at the other end of a connection, as its greeting described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    /// The server's identifier for this run.
    pub(crate) run_id: String,
    /// The server's identifier for the history of its data; empty if it has none. It changes with each promotion.
    pub(crate) replid: String,
    /// Its `maxmemory-policy`, if that may drop locks and was asked for.
    pub(crate) evicts: Option<String>,
    /// Whether it is a node of a quorum, if it was greeted as a single Redis.
    pub(crate) membership: Membership,
    /// How many replicas were connected to it. For messages: a primary that was cut off has none.
    pub(crate) replicas: u32,
    /// How tokens are drawn over this connection.
    pub(crate) counting: Counting,
    /// What this client does if the server may have forgotten leases.
    pub(crate) failover: Failover,
    /// The longest ttl of any client, as far as this one knows.
    pub(crate) longest: Longest,
    /// The hash slots that were verified, if it is a primary of a cluster.
    pub(crate) slots: Option<Arc<Verified>>,
}

impl ServerInfo {
    /// The server behind a connection that the user passed in.
    #[cfg(any(feature = "async", feature = "r2d2", test))]
    pub(crate) const UNKNOWN: &'static Self = &Self::assumed(Counting::Clock);

    /// A server that nobody has greeted, if tokens are drawn there like this.
    pub(crate) const fn assumed(counting: Counting) -> Self {
        Self {
            run_id: String::new(),
            replid: String::new(),
            evicts: None,
            membership: Membership::OnItsOwn,
            replicas: 0,
            counting,
            failover: Failover::UNHEEDED,
            longest: Longest::UNKNOWN,
            slots: None,
        }
    }

    /// The hash slot, if its counter has to be verified first.
    pub(crate) fn unverified(&self, slot: Option<HashSlot>) -> Option<HashSlot> {
        slot.filter(|slot| self.slots.as_ref().is_some_and(|verified| !verified.has(*slot)))
    }

    /// The counter of this hash slot was verified, where this was the longest ttl of any client, in milliseconds.
    pub(crate) fn verified(&self, slot: HashSlot, longest: u64) {
        self.slots.iter().for_each(|verified| verified.add(slot));
        self.longest.raise(longest);
    }

    /// Another connection leads to the same server. It may have found more.
    pub(crate) fn also_found(&self, other: &Self) {
        self.longest.raise(other.longest.millis());
    }

    /// How long no free lock is granted if the server forgets its leases, and how long they were, while this connection lives.
    pub(crate) fn dwell(&self) -> Duration {
        self.failover.longest().max(Duration::from_millis(self.longest.millis())) + GRACE
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
        self.slots.iter().for_each(|verified| verified.clear());
    }

    /// What a counter is verified for: one history of one run.
    pub(crate) fn incarnation(&self) -> String {
        format!("{}:{}", self.run_id, self.replid)
    }
}
