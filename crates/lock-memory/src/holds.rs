//! The leases that hold one lock: who, in which mode, with which slots and until when.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use lock_core::inspect::Held;
use lock_core::{Claim, Holder, Lease, Limit, Mode, Moment, Note, Owner, Slots, TokenRange};

use crate::hand_over::ClientId;

/// A grant. Once it has expired it does not count, although it stays until the next request.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Who holds.
    pub owner: Owner,
    /// The tokens that were granted; at a node of a quorum the last is the grant's own.
    pub tokens: TokenRange,
    /// When the lease ends.
    pub until: Moment,
    /// When the lease was granted in this mode.
    pub(crate) granted: Moment,
    /// Who else may hold at the same time.
    pub mode: Mode,
    /// The slots of its permits.
    pub slots: Slots,
    /// The client of the claim, if that client gets events.
    pub(crate) client: Option<ClientId>,
    pub(crate) note: Note,
}

impl Hold {
    /// What the claim asks for, without slots.
    pub(crate) fn new(now: Moment, client: Option<ClientId>, claim: &Claim, tokens: TokenRange) -> Self {
        let (owner, until, mode) = (claim.owner, now + claim.terms.ttl.get(), claim.terms.mode);
        Self { owner, tokens, until, granted: now, mode, slots: Slots::NONE, client, note: claim.note.clone() }
    }

    pub(crate) fn lives_at(&self, now: Moment) -> bool {
        now < self.until
    }

    /// Ends by itself after this time, and belongs to nobody until then. A lock that is already kept is never kept for longer.
    fn keep(&mut self, now: Moment, owner: Owner, keep: Duration) {
        let (kept, until) = (owner.kept(), now + keep);
        self.until = if self.owner == kept { self.until.min(until) } else { until };
        (self.owner, self.client) = (kept, None);
    }

    pub(crate) fn is(&self, lease: &Lease) -> bool {
        self.owner == lease.owner && self.tokens == lease.tokens
    }

    pub(crate) fn shown(&self) -> Holder {
        Holder::Leasehold { tokens: self.tokens, note: self.note.clone() }
    }

    pub(crate) fn shown_at(&self, now: Moment) -> Held {
        let (age, remaining) = (Some(now.since(self.granted)), Some(self.until.since(now)));
        Held { holder: self.shown(), mode: self.mode, slots: self.slots.clone(), age, remaining }
    }
}

/// The holds of one lock, found by owner and by end, so that neither a claim nor a renewal looks at all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    by_owner: HashMap<Owner, Hold>,
    by_end: BTreeSet<(Moment, Owner)>,
    permits: u32,
    free: FreeSlots,
}

/// The slots that nobody has: some that were given back, and all from the first that was never given.
#[derive(Clone, Debug, Default)]
struct FreeSlots {
    returned: BTreeSet<u32>,
    never_given: u32,
}

impl FreeSlots {
    /// The lowest.
    fn take(&mut self) -> u32 {
        self.returned.pop_first().unwrap_or_else(|| {
            self.never_given += 1;
            self.never_given - 1
        })
    }
}

impl Holds {
    /// Forgets those that have expired.
    pub(crate) fn forget_what_is_over(&mut self, now: Moment) {
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
        let living = self.by_end.iter().rev().take_while(move |(until, _)| now < *until);
        living.filter_map(|(_, owner)| self.by_owner.get(owner))
    }

    /// How many have not expired.
    pub(crate) fn count(&self, now: Moment) -> usize {
        self.by_end.iter().rev().take_while(|(until, _)| now < *until).count()
    }

    /// The mode of one of them: all suit each other.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.by_end.first().and_then(|(_, owner)| self.by_owner.get(owner)).map(|hold| hold.mode)
    }

    /// How many permits are held.
    pub(crate) fn permits(&self) -> u32 {
        self.permits
    }

    /// Goes on under another limit.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.by_owner.values_mut().for_each(|hold| hold.mode = hold.mode.under(limit));
    }

    /// Whether a lease of this mode can be held beside them.
    pub(crate) fn fits(&self, mode: Mode) -> bool {
        let Some(held) = self.mode() else { return true };
        let all_read = (held, mode) == (Mode::Shared, Mode::Shared);
        all_read || (held.suits(mode) && mode.count() > 0 && self.excess(mode) == 0)
    }

    /// By how many permits the limit would be exceeded.
    fn excess(&self, mode: Mode) -> u32 {
        let Mode::Permits { count, limit, .. } = mode else { return 0 };
        self.permits.saturating_add(count.get()).saturating_sub(limit.get())
    }

    /// When enough of them will have ended for a lease of this mode that does not fit now, unless they are renewed.
    pub(crate) fn fits_at(&self, mode: Mode) -> Option<Moment> {
        let mut excess = self.excess(mode);
        if excess == 0 {
            return self.by_end.last().map(|(until, _)| *until);
        }
        let mut ends = self.by_end.iter();
        let enough = ends.find(|(_, owner)| {
            excess = excess.saturating_sub(self.by_owner.get(owner).map_or(0, |hold| hold.mode.count()));
            excess == 0
        });
        enough.map(|(until, _)| *until)
    }

    /// Stores a new hold, with the lowest free slots for its permits. Returns these.
    pub(crate) fn add(&mut self, hold: Hold) -> Slots {
        let slots = Slots::new((0..hold.mode.count()).map(|_| self.free.take()));
        self.insert(Hold { slots: slots.clone(), ..hold });
        slots
    }

    /// Ends a hold and stores another one instead, with the first of its slots. Returns these. In the same mode, it counts as
    /// granted when the old one was.
    pub(crate) fn replace(&mut self, old: Owner, hold: Hold) -> Slots {
        let old = self.take(old);
        let same = old.as_ref().filter(|old| old.mode.kind() == hold.mode.kind());
        let granted = same.map_or(hold.granted, |old| old.granted);
        let slots = old.map(|old| old.slots).unwrap_or_default();
        let count = usize::try_from(hold.mode.count()).unwrap_or(usize::MAX);
        let (kept, returned) = slots.get().split_at(count.min(slots.get().len()));
        self.free.returned.extend(returned);
        let slots = Slots::new(kept.iter().copied());
        self.insert(Hold { slots: slots.clone(), granted, ..hold });
        slots
    }

    fn insert(&mut self, hold: Hold) {
        self.by_end.insert((hold.until, hold.owner));
        self.permits += hold.mode.count();
        self.by_owner.insert(hold.owner, hold);
    }

    /// Takes a hold out. Its slots stay taken.
    fn take(&mut self, owner: Owner) -> Option<Hold> {
        let hold = self.by_owner.remove(&owner)?;
        self.by_end.remove(&(hold.until, owner));
        self.permits -= hold.mode.count();
        Some(hold)
    }

    /// Ends a hold.
    pub(crate) fn remove(&mut self, owner: Owner) -> Option<Hold> {
        let hold = self.take(owner)?;
        self.free.returned.extend(hold.slots.get());
        if self.is_empty() {
            self.free = FreeSlots::default();
        }
        Some(hold)
    }

    /// Changes a hold in place.
    fn change(&mut self, owner: Owner, change: impl FnOnce(&mut Hold)) {
        if let Some(mut hold) = self.take(owner) {
            change(&mut hold);
            self.insert(hold);
        }
    }

    pub(crate) fn extend(&mut self, owner: Owner, until: Moment) {
        self.change(owner, |hold| hold.until = until);
    }

    /// Ends the hold of this owner by itself after this time, for the owner that is released.
    pub(crate) fn keep(&mut self, now: Moment, holder: Owner, owner: Owner, keep: Duration) {
        self.change(holder, |hold| hold.keep(now, owner, keep));
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Fairness, FencingToken, Queueing, Terms, Ttl, Width};

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(seconds)
    }

    /// The owner's permits, until its number of seconds.
    fn hold(holds: &mut Holds, byte: u8, count: u32) -> Slots {
        let (owner, token) = (Owner::from_random([byte; 16]), FencingToken::new(1).unwrap());
        let claim = Claim {
            name: "a".parse().unwrap(),
            owner,
            terms: Terms {
                mode: Mode::permits(count, 8).unwrap(),
                ttl: Ttl::new(Duration::from_secs(byte.into())).unwrap(),
            },
            width: Width::ONE,
            floor: None,
            note: Note::from_wire("1@h"),
            queueing: Queueing::Unwanted,
            replaces: None,
            fairness: Fairness::Fair,
        };
        holds.add(Hold::new(at(0), None, &claim, TokenRange::new(token, token).unwrap()))
    }

    #[test]
    fn the_lowest_free_slots_are_given() {
        let mut holds = Holds::default();
        assert_eq!(hold(&mut holds, 1, 2).get(), [0, 1]);
        assert_eq!(hold(&mut holds, 2, 3).get(), [2, 3, 4]);
        assert_eq!(hold(&mut holds, 3, 1).get(), [5]);
        holds.remove(Owner::from_random([1; 16]));
        holds.remove(Owner::from_random([3; 16]));
        assert_eq!(hold(&mut holds, 4, 4).get(), [0, 1, 5, 6]);
    }

    #[test]
    fn permits_fit_when_enough_have_ended() {
        let mut holds = Holds::default();
        let permits = |count| Mode::permits(count, 8).unwrap();
        [(5, 2), (3, 3), (4, 1)].into_iter().for_each(|(byte, count)| _ = hold(&mut holds, byte, count));
        assert!(holds.fits(permits(2)) && !holds.fits(permits(3)) && !holds.fits(Mode::Shared));
        assert_eq!([3, 5, 6, 8].map(|count| holds.fits_at(permits(count))), [3, 3, 4, 5].map(|time| Some(at(time))));
        holds.forget_what_is_over(at(4));
        assert!(holds.fits(permits(6)) && !holds.fits(permits(7)));
        holds.forget_what_is_over(at(5));
        assert!(holds.is_empty() && holds.fits(Mode::Exclusive));
    }
}
