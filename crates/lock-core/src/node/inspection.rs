//! Requests of operators to a node. No answer contains an owner, which is a secret.

use std::sync::Arc;
use std::time::Duration;

use crate::inspect::{Held, Query};
use crate::{FencingToken, LockName, Note};

/// A look at the locks of a node, or the end of a lease.
#[derive(Clone, Debug)]
pub enum Inspection {
    /// Asks for the names of some locks.
    List(Query),
    /// Asks who holds these locks.
    Show(Arc<[LockName]>),
    /// Asks whose lease of this lock has this token, and who had one that was revoked by it.
    Owners(LockName, FencingToken),
    /// Ends a lease.
    Revoke(Arc<Revocation>),
    /// Asks who revoked leases, each named by its lock and by its lowest or highest token.
    RevokedBy(Arc<[(LockName, FencingToken)]>),
}

/// An owner as others may know it. It is the same at all nodes of a deployment, and does not tell who the owner is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerDigest(pub String);

/// The holder of a lock at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The owner of the lease.
    pub owner: OwnerDigest,
    /// The lease, with the tokens that the node has for it.
    pub held: Held,
}

/// The end of a lease by an operator. The node remembers for a while by whom, and grants nothing to a claim of these owners that is
/// still in flight.
#[derive(Clone, Debug)]
pub struct Revocation {
    /// The lock.
    pub name: LockName,
    /// The token by which the operator named the lease. A node that is asked for its owners later names these, too.
    pub token: FencingToken,
    /// The owners whose leases end.
    pub owners: Vec<OwnerDigest>,
    /// The operator who ends them.
    pub by: Note,
    /// How long to remember it.
    pub lasts: Duration,
}
