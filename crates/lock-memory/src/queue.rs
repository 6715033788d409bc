//! The queue of one lock: places, in the order of arrival.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lock_core::{Limit, Moment, Owner};

use crate::notice::Place;
use crate::visits::visits;

/// The places of one lock, found by number, by owner and by end, so that no request looks at all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    by_number: BTreeMap<u64, Place>,
    by_owner: HashMap<Owner, u64>,
    by_end: BTreeSet<(Moment, u64)>,
}

impl Queue {
    pub(crate) fn forget_expired(&mut self, now: Moment) {
        while let Some((_, number)) = self.by_end.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(number);
        }
    }

    /// The same queue under another limit.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        visits(self.by_number.values_mut()).for_each(|place| place.terms.mode = place.terms.mode.under(limit));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    pub(crate) fn get(&self, owner: Owner) -> Option<&Place> {
        self.by_owner.get(&owner).and_then(|number| self.by_number.get(number))
    }

    /// The places with a higher number.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = &Place> {
        visits(self.by_number.range(number.saturating_add(1)..)).map(|(_, place)| place)
    }

    /// How many places have a lower number, counted up to `most`.
    pub(crate) fn before(&self, number: u64, most: u32) -> u32 {
        visits(self.by_number.range(..number)).zip(0..most).map(|(_, counted)| counted + 1).last().unwrap_or_default()
    }

    pub(crate) fn last_number(&self) -> u64 {
        self.by_number.last_key_value().map_or(0, |(number, _)| *number)
    }

    pub(crate) fn set(&mut self, place: Place) {
        self.leave(place.owner);
        self.by_owner.insert(place.owner, place.number);
        self.by_end.insert((place.until, place.number));
        self.by_number.insert(place.number, place);
    }

    pub(crate) fn leave(&mut self, owner: Owner) {
        if let Some(number) = self.by_owner.get(&owner).copied() {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(place) = self.by_number.remove(&number) {
            self.by_owner.remove(&place.owner);
            self.by_end.remove(&(place.until, number));
        }
    }
}
