//! After a quiet time no node keeps anything for any owner.

use crate::clock::Time;
use crate::quorum::node::Node;

pub(crate) fn check(nodes: &[Node], now: Time) -> Result<(), String> {
    for node in nodes {
        if let Some((name, hold)) = node.store.holds(node.clock.read(now)).next() {
            return Err(format!("{:?} still keeps {name} for {hold:?}", node.run));
        }
    }
    Ok(())
}
