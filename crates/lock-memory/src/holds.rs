//! The leases that hold one lock.

use std::collections::{BTreeSet, HashMap};

use lock_core::{FencingToken, Limit, Moment, Owner};
use lock_rules::{Hold, Standing, ends_of};

use crate::visits::visits;

/// The leases of one lock, found by owner and by end, so that neither a claim nor a renewal looks at all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    by_owner: HashMap<Owner, Hold>,
    by_end: BTreeSet<(Moment, Owner)>,
    permits: u32,
    free: FreeSlots,
}

/// The slots that nobody has: some that were returned, and all from the first that was never taken.
#[derive(Clone, Debug, Default)]
struct FreeSlots {
    returned: BTreeSet<u32>,
    never_taken: u32,
}

impl FreeSlots {
    /// From the lowest on.
    fn get(&self) -> impl Iterator<Item = u32> {
        self.returned.iter().copied().chain(self.never_taken..)
    }

    fn take(&mut self, slot: u32) {
        self.returned.extend(visits(self.never_taken..slot));
        self.never_taken = self.never_taken.max(slot.saturating_add(1));
        self.returned.remove(&slot);
    }
}

impl Holds {
    pub(crate) fn forget_expired(&mut self, now: Moment) {
        while let Some((_, owner)) = self.by_end.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(owner);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_owner.is_empty()
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.by_owner.keys().copied()
    }

    pub(crate) fn get(&self, owner: Owner) -> Option<&Hold> {
        self.by_owner.get(&owner)
    }

    /// Those that have not expired, the one that ends last first.
    pub(crate) fn living(&self, now: Moment) -> impl Iterator<Item = &Hold> {
        let living = visits(self.by_end.iter().rev()).take_while(move |(until, _)| now < *until);
        living.filter_map(|(_, owner)| self.by_owner.get(owner))
    }

    pub(crate) fn with(&self, token: FencingToken) -> Option<&Hold> {
        visits(self.by_owner.values()).find(|hold| hold.tokens.contains(token))
    }

    pub(crate) fn count(&self) -> usize {
        self.by_owner.len()
    }

    pub(crate) fn standing(&self) -> Option<Standing> {
        // All modes suit each other.
        let (_, owner) = self.by_end.first()?;
        let mode = self.get(*owner)?.mode;
        Some(Standing { mode, permits: self.permits })
    }

    /// The same leases under another limit.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        visits(self.by_owner.values_mut()).for_each(|hold| hold.mode = hold.mode.under(limit));
    }

    /// The leases that end first and have so many permits together: their ends and permits.
    pub(crate) fn first_ends(&self, permits: u32) -> Vec<(Moment, u32)> {
        let permits_of = |owner| self.get(owner).map_or(0, |hold| hold.mode.count());
        ends_of(permits, visits(self.by_end.iter()).map(|(until, owner)| (*until, permits_of(*owner))))
    }

    /// The lowest free slots.
    pub(crate) fn free_slots(&self, count: u32) -> Vec<u32> {
        visits(self.free.get()).take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
    }

    /// Stores a lease, in place of the one that its owner has.
    pub(crate) fn set(&mut self, hold: Hold) {
        self.remove(hold.owner);
        hold.slots.get().iter().for_each(|slot| self.free.take(*slot));
        self.by_end.insert((hold.until, hold.owner));
        self.permits += hold.mode.count();
        self.by_owner.insert(hold.owner, hold);
    }

    pub(crate) fn extend(&mut self, owner: Owner, until: Moment) {
        if let Some(hold) = self.by_owner.get_mut(&owner) {
            self.by_end.remove(&(hold.until, owner));
            self.by_end.insert((until, owner));
            hold.until = until;
        }
    }

    pub(crate) fn remove(&mut self, owner: Owner) {
        let Some(hold) = self.by_owner.remove(&owner) else { return };
        self.by_end.remove(&(hold.until, owner));
        self.permits -= hold.mode.count();
        self.free.returned.extend(hold.slots.get());
        if self.is_empty() {
            self.free = FreeSlots::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::{Mode, Note, Slots, TokenRange, Width};

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(seconds)
    }

    /// A lease of the lowest free slots, until its owner's number of seconds.
    fn add(holds: &mut Holds, byte: u8, count: u32) -> Slots {
        let slots = Slots::new(holds.free_slots(count));
        holds.set(Hold {
            owner: Owner::from_random([byte; 16]),
            mode: Mode::permits(count, 8).unwrap(),
            tokens: TokenRange::above(0, Width::ONE).unwrap(),
            slots: slots.clone(),
            granted: None,
            until: at(byte.into()),
            note: Note::from_wire("1@h"),
        });
        slots
    }

    #[test]
    fn the_lowest_slots_are_free_first() {
        let mut holds = Holds::default();
        assert_eq!(add(&mut holds, 1, 2).get(), [0, 1]);
        assert_eq!(add(&mut holds, 2, 3).get(), [2, 3, 4]);
        assert_eq!(add(&mut holds, 3, 1).get(), [5]);
        holds.remove(Owner::from_random([1; 16]));
        holds.remove(Owner::from_random([3; 16]));
        assert_eq!(add(&mut holds, 4, 4).get(), [0, 1, 5, 6]);
    }

    #[test]
    fn the_first_ends_are_those_of_as_many_permits() {
        let mut holds = Holds::default();
        [(5, 2), (3, 3), (4, 1)].into_iter().for_each(|(byte, count)| _ = add(&mut holds, byte, count));
        assert_eq!(holds.first_ends(0), []);
        assert_eq!(holds.first_ends(3), [(at(3), 3)]);
        assert_eq!(holds.first_ends(4), [(at(3), 3), (at(4), 1)]);
        holds.forget_expired(at(4));
        assert_eq!(holds.standing().unwrap().permits, 2);
        holds.forget_expired(at(5));
        assert!(holds.is_empty() && holds.free_slots(1) == [0]);
    }
}
