//! A claim that failed leaves nothing at nodes that answered its release.

use lock_core::{LockName, Owner};

use crate::clock::Time;
use crate::quorum::node::Node;

/// Unless they have lost something since it began: an old copy may hold anything.
pub(crate) fn check<'a>(
    told: impl Iterator<Item = &'a Node>,
    now: Time,
    began: Option<Time>,
    name: &LockName,
    owner: Owner,
) -> Result<(), String> {
    for node in told.filter(|node| node.lost_at < began) {
        if let Some(until) = node.keeps(now, name, owner) {
            let (owner, run) = (owner.to_wire(), &node.run);
            return Err(format!("the claim of {owner} on {name} failed, and {run:?} keeps it until {until:?}"));
        }
    }
    Ok(())
}
