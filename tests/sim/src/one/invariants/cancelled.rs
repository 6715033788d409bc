//! A waiter that left leaves nothing at the store, once its release was answered and its claims have arrived.

use std::collections::BTreeSet;

use lock_core::{Moment, Owner};

use crate::client::Site;
use crate::invariants::Watch;

pub(crate) fn check(
    watch: &Watch,
    site: &mut Site,
    stored: &BTreeSet<Owner>,
    in_flight: &BTreeSet<Owner>,
    now: Moment,
) -> Result<(), String> {
    for owner in site.ledger.take_settled(now) {
        if in_flight.contains(&owner) {
            site.ledger.put_back(owner);
        } else if !watch.is_excused(owner) && stored.contains(&owner) {
            return Err(format!("{owner:?} was released, and is still at the store"));
        }
    }
    Ok(())
}
