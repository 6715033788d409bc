//! How requests to a node of a quorum are counted and recorded.

use lock_core::node::{Ask, QuorumNode};
use lock_core::{EventSink, Location, LockName};

use super::{Asked, Call, Faulty, owners};
use crate::node::operation;

/// The backend's name in the errors of a faulty node: a node does not say what kind of store it is.
const NODE: &str = "node";

pub(super) fn call_of_node(ask: &Ask) -> Call {
    Call { backend: NODE, operation: operation(ask) }
}

/// What is recorded of a request to a node.
pub(super) fn asked_of_node(ask: &Ask) -> Option<Asked> {
    match ask {
        Ask::Acquire { claim, .. } => Some(Asked::Acquire(claim.owner)),
        Ask::Fence { leases, .. } => Some(Asked::Fence(owners(leases))),
        Ask::Release(request) => Some(Asked::Release(request.owner)),
        Ask::Look | Ask::Mark { .. } | Ask::Record { .. } | Ask::Install { .. } | Ask::Move { .. } => None,
        Ask::Inspect(_) => None,
    }
}

impl<N: QuorumNode + ?Sized> QuorumNode for Faulty<N> {
    fn address(&self) -> &str {
        self.backend.address()
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.backend.locate(name)
    }

    fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }
}
