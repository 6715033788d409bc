//! Nobody relies on its lease for longer than a majority of the nodes keeps it, or at least would grant it to nobody else.

use crate::clock::Time;
use crate::invariants::{Holding, Watch};
use crate::quorum::node::Node;

/// Stricter than that there is one holder: it sees the gap, whether or not somebody steps into it.
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
