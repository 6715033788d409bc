//! What a request to a node of a quorum is counted and written down as.

use lock_core::EventSink;
use lock_core::node::{Ask, QuorumNode};

use super::{Asked, Call, Faulty, owners};
use crate::node::operation;

/// Whose errors the faults of a node are: it does not say what kind of store it is.
const NODE: &str = "node";

pub(super) fn call_of_node(ask: &Ask) -> Call {
    Call { backend: NODE, operation: operation(ask) }
}

/// What is written down of a request to a node.
pub(super) fn asked_of_node(ask: &Ask) -> Option<Asked> {
    match ask {
        Ask::Acquire { claim, .. } => Some(Asked::Acquire(claim.owner)),
        Ask::Fence { leases, .. } => Some(Asked::Fence(owners(leases))),
        Ask::Release(request) => Some(Asked::Release(request.owner)),
        Ask::Look | Ask::Mark { .. } | Ask::Note { .. } | Ask::Install { .. } | Ask::Move { .. } => None,
    }
}

impl<N: QuorumNode + ?Sized> QuorumNode for Faulty<N> {
    fn address(&self) -> &str {
        self.backend.address()
    }

    fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }
}
