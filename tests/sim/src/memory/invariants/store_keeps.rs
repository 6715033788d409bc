//! No holder relies on its lease, or on a slot, for longer than the store keeps it.

use lock_core::Moment;

use crate::clock::Clock;
use crate::invariants::Holding;
use crate::memory::store::Server;

pub(crate) fn check(server: &Server, now: Moment, clock: Clock, holding: &Holding<'_>) -> Result<(), String> {
    let Holding { hold, replacing, slots, until, .. } = holding;
    let (lease, until) = (hold.lease(), clock.read(*until));
    let keeps = |owner| [Some(lease.owner), *replacing].contains(&Some(owner));
    let mut stored = server.holds(now, &lease.name);
    let covers = |has: &[u32]| slots.iter().all(|slot| has.contains(slot));
    if stored.any(|stored| keeps(stored.owner) && until <= stored.until && covers(stored.slots.get())) {
        return Ok(());
    }
    let stored: Vec<_> = server.holds(now, &lease.name).collect();
    Err(format!("{holding:?} is relied on, but the store has {stored:?}"))
}
