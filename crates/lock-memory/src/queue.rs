//! The queue of one lock: places, in the order of arrival.

use std::time::Duration;

use lock_core::{Claim, Limit, Moment, Note, Owner, Terms, Ttl, Width};

use crate::hand_over::ClientId;

/// How long a place lasts at most, and so for how long a waiter that has stopped can hold up the queue.
///
/// Chosen: far above the pauses of a healthy process, far below what waiters accept at the head of a queue.
const PLACE_MAX: Duration = Duration::from_secs(10);

/// A waiter's place, with all that a hand-over needs, because the waiter is not asked at that time.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    until: Moment,
    pub(crate) client: ClientId,
    pub(crate) terms: Terms,
    pub(crate) width: Width,
    pub(crate) note: Note,
}

impl Place {
    pub(crate) fn new(now: Moment, client: ClientId, claim: &Claim) -> Self {
        Self {
            owner: claim.owner,
            until: now + place_for(claim.terms.ttl),
            client,
            terms: claim.terms,
            width: claim.width,
            note: claim.note.clone(),
        }
    }

    pub(crate) fn lives_at(&self, now: Moment) -> bool {
        now < self.until
    }
}

/// How long a place lasts unless it is refreshed, and a hand-over unless it is renewed.
pub(crate) fn place_for(ttl: Ttl) -> Duration {
    ttl.get().min(PLACE_MAX)
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Queue(Vec<Place>);

impl Queue {
    pub(crate) fn forget_what_is_over(&mut self, now: Moment) {
        self.0.retain(|place| place.lives_at(now));
    }

    /// Goes on under another limit, without those that could never be served under it.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.0.retain(|place| place.terms.mode.count() <= limit.get());
        self.0.iter_mut().for_each(|place| place.terms.mode = place.terms.mode.under(limit));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.0.iter().map(|place| place.owner)
    }

    pub(crate) fn first(&self) -> Option<&Place> {
        self.0.first()
    }

    pub(crate) fn living(&self, now: Moment) -> impl Iterator<Item = &Place> {
        self.0.iter().filter(move |place| place.lives_at(now))
    }

    /// Refreshes the owner's place, or appends one. Returns its position, 1 for the next in line.
    pub(crate) fn take_place(&mut self, place: Place) -> u32 {
        let ahead = self.0.iter().position(|other| other.owner == place.owner).unwrap_or(self.0.len());
        match self.0.get_mut(ahead) {
            Some(mine) => *mine = place,
            None => self.0.push(place),
        }
        u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1)
    }

    pub(crate) fn drop_place(&mut self, owner: Owner) -> Option<Place> {
        let index = self.0.iter().position(|place| place.owner == owner)?;
        Some(self.0.remove(index))
    }
}
