//! No holder relies on its lease for longer than a majority of the nodes keeps it, or at least would grant the lock to
//! no other owner.

use crate::clock::Time;
use crate::invariants::{Holding, Watch};
use crate::quorum::node::Node;

/// This is stricter than "one holder": it finds the gap, whether or not another owner uses it.
pub(crate) fn check<'a>(
    watch: &Watch,
    holdings: impl Iterator<Item = Holding<'a>>,
    nodes: &[&Node],
    majority: usize,
    now: Time,
) -> Result<(), String> {
    for Holding { hold, until, .. } in holdings {
        let lease = hold.lease();
        if watch.epoch_of(lease) != Some(watch.epoch()) {
            continue;
        }
        let keeps = |node: &&&Node| {
            let kept = node.keeps(now, &lease.name, lease.owner);
            kept.is_some_and(|end| end >= node.clock.read(until)) || !node.votes(now)
        };
        let keeping = nodes.iter().filter(keeps).count();
        if keeping < majority {
            return Err(format!("{hold:?} is relied on until {until:?}, but only {keeping} nodes keep it"));
        }
    }
    Ok(())
}
