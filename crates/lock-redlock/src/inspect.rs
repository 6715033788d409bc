//! What the answers of the nodes to operators mean. No I/O.
//!
//! A lock is held if a majority of the nodes has a lease of the same owner for it. What fewer have is left over from a lease, or is not
//! granted yet.
//!
//! Reading order: `votes` (who holds a lock) · `listing` (page by page) · `revoking` (the end of a lease, and who ended it).

mod listing;
mod revoking;
mod votes;

pub(crate) use listing::Listing;
pub(crate) use revoking::{gone, noted, notes, revocation, revoked};
pub(crate) use votes::{entry, show};
