//! What a client knows about the server at the other end of a connection.

use crate::failover::Failover;
use crate::script::Counting;

/// Whether a server belongs to a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// No quorum is known.
    OnItsOwn,
    /// It is a node of one.
    InQuorum,
}

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
}

impl ServerInfo {
    /// The server behind a connection that the user passed in.
    #[cfg(any(feature = "async", feature = "r2d2"))]
    pub(crate) const UNKNOWN: &'static Self = &Self {
        run_id: String::new(),
        replid: String::new(),
        evicts: None,
        membership: Membership::OnItsOwn,
        replicas: 0,
        counting: Counting::Clock,
        failover: Failover::UNHEEDED,
    };

    /// What a counter is verified for: one history of one run.
    pub(crate) fn incarnation(&self) -> String {
        format!("{}:{}", self.run_id, self.replid)
    }
}
