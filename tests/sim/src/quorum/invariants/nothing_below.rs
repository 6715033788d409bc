//! No node counts as having acknowledged a token below its grant's own.
//!
//! The proof of rising tokens rests on this. A violation does harm only in a run with a clock that leaps, another
//! holder meanwhile, and a request that is late by as much. So it is checked directly.

use std::collections::BTreeMap;

use lock_core::{FencingToken, Lease};
use lock_redlock::quorum::NodeId;

pub(crate) fn check(
    lease: &Lease,
    acknowledged: &BTreeMap<NodeId, u64>,
    grants: &BTreeMap<NodeId, FencingToken>,
) -> Result<(), String> {
    let own = acknowledged.keys().filter_map(|node| Some((node, grants.get(node)?)));
    match own.into_iter().find(|(_, own)| **own > lease.tokens.high()) {
        Some((node, own)) => Err(format!("{node} granted {own}, and counts as having acknowledged {lease:?}")),
        None => Ok(()),
    }
}
