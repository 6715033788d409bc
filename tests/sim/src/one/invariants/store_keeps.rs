//! No holder relies on its lease, or on a slot, for longer than the store keeps it.

use crate::clock::{Clock, Time};
use crate::invariants::{Holding, Watch};
use crate::one::model::{Model, Stored};

/// This is stricter than the rules about who holds together: it finds the gap, whether or not another owner uses it.
pub(crate) fn check(
    watch: &Watch,
    holdings: &[Holding<'_>],
    server: &impl Model,
    clock: Clock,
    now: Time,
) -> Result<(), String> {
    for holding in holdings.iter().filter(|holding| watch.epoch_of(holding.hold.lease()) == Some(watch.epoch())) {
        let until = clock.read(holding.until);
        let holds = server.holds(clock.read(now), &holding.hold.lease().name);
        if !holds.iter().any(|stored| until <= stored.until && keeps(stored, holding)) {
            return Err(format!("{holding:?} is relied on until {until:?}, but the store has {holds:?}"));
        }
    }
    Ok(())
}

/// Whether this is its lease, or that which has just replaced it.
fn keeps(stored: &Stored, holding: &Holding<'_>) -> bool {
    let lease = holding.hold.lease();
    let is_own = stored.owner == lease.owner && stored.tokens == lease.tokens;
    let covers = |slot: &u32| stored.slots.get().contains(slot);
    (is_own || holding.replacing == Some(stored.owner)) && holding.slots.iter().all(covers)
}
