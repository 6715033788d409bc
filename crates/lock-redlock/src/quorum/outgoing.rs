//! What is sent to one node.

use std::fmt;
use std::time::Duration;

use lock_core::BackendError;
use lock_core::node::{Ask, Told};

/// One of the nodes, by its position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Names a request of one quorum. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(super) u64);

impl RequestId {
    /// Of no request.
    pub(super) const NONE: Self = Self(0);
}

/// A question to one node. Report its outcome to [`Quorum::heard`](super::Quorum::heard), or
/// [forget](super::Quorum::forget) it.
#[derive(Debug)]
#[must_use = "the quorum waits for its outcome"]
pub struct Outgoing {
    /// The request that it belongs to.
    pub request: RequestId,
    /// Which node to ask.
    pub node: NodeId,
    /// What to ask.
    pub ask: Ask,
    /// How long it may take.
    pub within: Duration,
}

/// What a node answered, or why it did not.
pub type Outcome = Result<Told, BackendError>;
