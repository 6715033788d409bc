//! One lock in vectors, as the rules see it.

use std::convert::Infallible;

use lock_core::limit::Record;
use lock_core::{FencingToken, Moment, Note, Owner};
use lock_rules::{Changes, Hold, Place, Rows, Standing, Write, ends_of};

/// The name of the store in errors.
pub(crate) const BACKEND: &str = "vectors";

/// A lock: its leases, its queue, and its limit.
#[derive(Default)]
pub(crate) struct Lock {
    /// By their ends.
    holds: Vec<Hold>,
    /// By their numbers.
    places: Vec<Place<()>>,
    given_up: Vec<(Owner, Moment)>,
    limit: Option<(Record, Moment)>,
}

impl Lock {
    pub(crate) fn forget_expired(&mut self, now: Moment) {
        self.holds.retain(|hold| now < hold.until);
        self.places.retain(|place| now < place.until);
        self.given_up.retain(|(_, until)| now < *until);
        self.limit.take_if(|(_, until)| *until <= now);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.places.is_empty() && self.given_up.is_empty() && self.limit.is_none()
    }

    fn set_limit(&mut self, record: Record, until: Moment) {
        let limit = record.limit();
        self.holds.iter_mut().for_each(|hold| hold.mode = hold.mode.under(limit));
        self.places.iter_mut().for_each(|place| place.terms.mode = place.terms.mode.under(limit));
        self.limit = Some((record, until));
    }
}

/// A lock without anything that has expired, and the counter that all locks share.
pub(crate) struct LockRows<'a> {
    pub(crate) now: Moment,
    pub(crate) lock: &'a mut Lock,
    pub(crate) last_token: &'a mut u64,
}

impl Rows for LockRows<'_> {
    const BACKEND: &'static str = BACKEND;
    type Client = ();
    type Error = Infallible;

    fn now(&self) -> Moment {
        self.now
    }

    fn standing(&mut self) -> Result<Option<Standing>, Infallible> {
        let permits = self.lock.holds.iter().map(|hold| hold.mode.count()).sum();
        Ok(self.lock.holds.first().map(|hold| Standing { mode: hold.mode, permits }))
    }

    fn hold(&mut self, owner: Owner) -> Result<Option<Hold>, Infallible> {
        Ok(self.lock.holds.iter().find(|hold| hold.owner == owner).cloned())
    }

    fn hold_with(&mut self, token: FencingToken) -> Result<Option<Hold>, Infallible> {
        let includes = |hold: &&Hold| hold.tokens.contains(token);
        Ok(self.lock.holds.iter().find(includes).cloned())
    }

    fn last_hold(&mut self, except: Option<Owner>) -> Result<Option<Hold>, Infallible> {
        Ok(self.lock.holds.iter().rfind(|hold| Some(hold.owner) != except).cloned())
    }

    fn first_ends(&mut self, permits: u32) -> Result<Vec<(Moment, u32)>, Infallible> {
        Ok(ends_of(permits, self.lock.holds.iter().map(|hold| (hold.until, hold.mode.count()))))
    }

    fn free_slots(&mut self, count: u32) -> Result<Vec<u32>, Infallible> {
        let is_free = |slot: &u32| self.lock.holds.iter().all(|hold| !hold.slots.get().contains(slot));
        Ok((0..).filter(is_free).zip(0..count).map(|(slot, _)| slot).collect())
    }

    fn place(&mut self, owner: Owner) -> Result<Option<Place<()>>, Infallible> {
        Ok(self.lock.places.iter().find(|place| place.owner == owner).cloned())
    }

    fn next_place(&mut self, number: u64) -> Result<Option<Place<()>>, Infallible> {
        Ok(self.lock.places.iter().find(|place| place.number > number).cloned())
    }

    fn places_before(&mut self, number: u64, most: u32) -> Result<u32, Infallible> {
        let before = self.lock.places.iter().filter(|place| place.number < number).count();
        Ok(count(before).min(most))
    }

    fn last_number(&mut self) -> Result<u64, Infallible> {
        Ok(self.lock.places.last().map_or(0, |place| place.number))
    }

    fn queued_above(&mut self, permits: u32) -> Result<Vec<Place<()>>, Infallible> {
        Ok(self.lock.places.iter().filter(|place| place.terms.mode.count() > permits).cloned().collect())
    }

    fn is_given_up(&mut self, owner: Owner) -> Result<bool, Infallible> {
        Ok(self.lock.given_up.iter().any(|(given_up, _)| *given_up == owner))
    }

    fn limit(&mut self) -> Result<Option<Record>, Infallible> {
        Ok(self.lock.limit.as_ref().map(|(record, _)| record.clone()))
    }

    fn last_token(&mut self) -> Result<u64, Infallible> {
        Ok(*self.last_token)
    }

    /// Without [`Ability::Inspect`](lock_core::Ability::Inspect), nothing is revoked.
    fn revoked_by(&mut self, _highest: FencingToken) -> Result<Option<Note>, Infallible> {
        Ok(None)
    }

    fn write(&mut self, changes: Changes<()>) -> Result<(), Infallible> {
        let lock = &mut *self.lock;
        for write in changes.writes {
            match write {
                Write::Hold(hold) => {
                    lock.holds.retain(|held| held.owner != hold.owner);
                    lock.holds.push(hold);
                }
                Write::Extend(owner, until) => {
                    lock.holds.iter_mut().filter(|hold| hold.owner == owner).for_each(|hold| hold.until = until);
                }
                Write::End(owner) => lock.holds.retain(|hold| hold.owner != owner),
                Write::Place(place) => {
                    lock.places.retain(|queued| queued.owner != place.owner);
                    lock.places.push(place);
                }
                Write::Leave(owner) => lock.places.retain(|place| place.owner != owner),
                Write::Tombstone(owner, until) => lock.given_up.push((owner, until)),
                Write::Limit(record, until) => lock.set_limit(record, until),
                Write::Revocation(..) => {}
                Write::LastToken(last) => *self.last_token = last,
            }
        }
        lock.holds.sort_unstable_by_key(|hold| (hold.until, hold.owner));
        lock.places.sort_unstable_by_key(|place| place.number);
        Ok(())
    }
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
