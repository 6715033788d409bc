//! One lock as the store keeps it: its leases, its queue, the limit that was set, and the tombstones of late claims.

use std::collections::{BTreeSet, HashMap};

use lock_core::inspect::Entry;
use lock_core::limit::Record;
use lock_core::{LockName, Moment, Owner};

use crate::holds::Holds;
use crate::queue::Queue;

#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) holds: Holds,
    pub(crate) queue: Queue,
    /// The limit that was set, and until when that is kept.
    pub(crate) limit: Option<(Record, Moment)>,
    pub(crate) tombstones: Tombstones,
}

impl Lock {
    pub(crate) fn forget_expired(&mut self, now: Moment) {
        self.holds.forget_expired(now);
        self.queue.forget_expired(now);
        self.tombstones.forget_expired(now);
        self.limit.take_if(|(_, until)| *until <= now);
    }

    /// The owners that hold, and those that wait.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.holds.owners().chain(self.queue.after(0).map(|place| place.owner))
    }

    /// The lock as operators see it.
    pub(crate) fn entry(&self, now: Moment, name: &LockName) -> Option<Entry> {
        let (holds, places) = (self.holds.living(now), || self.queue.after(0));
        let holds = (holds.take(Entry::SHOWN_MAX).cloned().collect(), number(self.holds.count()));
        let waiters = places().take(Entry::SHOWN_MAX).map(|place| place.shown(now));
        lock_rules::entry(now, name, holds, (waiters.collect(), number(places().count())))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.queue.is_empty() && self.tombstones.is_empty() && self.limit.is_none()
    }
}

fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// The owners that were given up while a claim of theirs was in flight, and until when that claim is refused; found by end as well, so that
/// a request does not look at all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    by_owner: HashMap<Owner, Moment>,
    by_end: BTreeSet<(Moment, Owner)>,
}

impl Tombstones {
    pub(crate) fn forget_expired(&mut self, now: Moment) {
        while let Some((until, owner)) = self.by_end.first().copied().filter(|(until, _)| *until <= now) {
            self.by_end.remove(&(until, owner));
            self.by_owner.remove(&owner);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_owner.is_empty()
    }

    pub(crate) fn contains(&self, owner: Owner) -> bool {
        self.by_owner.contains_key(&owner)
    }

    /// Refuses claims until then, or for longer if they are already.
    pub(crate) fn add(&mut self, owner: Owner, until: Moment) {
        let present = self.by_owner.entry(owner).or_insert(until);
        self.by_end.remove(&(*present, owner));
        *present = until.max(*present);
        self.by_end.insert((*present, owner));
    }
}
