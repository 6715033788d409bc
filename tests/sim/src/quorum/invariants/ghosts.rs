//! A node grants nothing to an owner that was released there: a claim that arrives too late leaves nothing.

use lock_core::{Claim, Ttl};

use crate::clock::Time;
use crate::quorum::node::Node;

/// This holds for as long as any lease may last; clocks may be a little off.
pub(crate) fn check(node: &Node, now: Time, max_ttl: Ttl, claim: &Claim) -> Result<(), String> {
    match node.released.get(&claim.owner) {
        Some(Some(released)) if now.since(*released) < max_ttl.get() * 98 / 100 => {
            Err(format!("{:?} grants {} to {}, which was released there", node.run, claim.name, claim.owner.to_wire()))
        }
        Some(_) | None => Ok(()),
    }
}
