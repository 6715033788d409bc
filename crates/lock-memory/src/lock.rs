//! One lock as the store keeps it: its holder, its queue, and the tombstones of late claims.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::inspect::Entry;
use lock_core::{
    Answer, BackendError, Claim, FencingToken, Holder, Lease, LockName, Moment, Note, Owner, Queueing, Slots, Terms,
    TokenRange, Ttl, Width,
};

use crate::hand_over::{ClientId, HandOver};

/// How long a place lasts at most, and so for how long a waiter that has stopped can hold up the queue.
///
/// Chosen: far above the pauses of a healthy process, far below what waiters accept at the head of a queue.
const PLACE_MAX: Duration = Duration::from_secs(10);

/// The shortest life of a tombstone: a late claim can be under way for longer than a very short ttl.
const TOMBSTONE_MIN: Duration = Duration::from_secs(1);

/// A grant. Once it has expired it does not count, although it stays until the next request.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Who holds.
    pub owner: Owner,
    /// The tokens that were granted; at a node of a quorum the last is the grant's own.
    pub tokens: TokenRange,
    /// When the lease ends.
    pub until: Moment,
    /// The client of the claim, if that client gets events.
    pub(crate) client: Option<ClientId>,
    note: Note,
}

impl Hold {
    pub(crate) fn new(now: Moment, client: Option<ClientId>, claim: &Claim, tokens: TokenRange) -> Self {
        Self { owner: claim.owner, tokens, until: now + claim.terms.ttl.get(), client, note: claim.note.clone() }
    }

    pub(crate) fn lives_at(&self, now: Moment) -> bool {
        now < self.until
    }

    /// Ends by itself after this time, and belongs to nobody until then. A lock that is already kept is never kept for longer.
    pub(crate) fn keep(&mut self, now: Moment, owner: Owner, keep: Duration) {
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
}

/// A waiter's place, with all that a hand-over needs, because the waiter is not asked at that time.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    until: Moment,
    pub(crate) client: ClientId,
    terms: Terms,
    width: Width,
    note: Note,
}

impl Place {
    fn new(now: Moment, client: ClientId, claim: &Claim) -> Self {
        Self {
            owner: claim.owner,
            until: now + place_for(claim.terms.ttl),
            client,
            terms: claim.terms,
            width: claim.width,
            note: claim.note.clone(),
        }
    }
}

/// How long a place lasts unless it is refreshed, and a hand-over unless it is renewed.
fn place_for(ttl: Ttl) -> Duration {
    ttl.get().min(PLACE_MAX)
}

#[derive(Debug, Default)]
pub(crate) struct Lock {
    pub(crate) hold: Option<Hold>,
    pub(crate) queue: Vec<Place>,
    /// Owners that left while a claim of theirs was under way, and until when that claim is refused.
    pub(crate) tombstones: BTreeMap<Owner, Moment>,
}

impl Lock {
    /// Drops the places and tombstones whose time is over. An expired hold stays: its owner's release passes it on.
    pub(crate) fn forget_what_is_over(&mut self, now: Moment) {
        self.queue.retain(|place| now < place.until);
        self.tombstones.retain(|_, until| now < *until);
    }

    /// Refuses late claims of an owner, for as long as its lease could have lasted.
    pub(crate) fn refuse_late_claims(&mut self, now: Moment, owner: Owner, ttl: Ttl) {
        self.tombstones.insert(owner, now + ttl.get().max(TOMBSTONE_MIN));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hold.is_none() && self.queue.is_empty() && self.tombstones.is_empty()
    }

    /// Whether anybody waits.
    pub(crate) fn is_wanted_at(&self, now: Moment) -> bool {
        self.queue.iter().any(|place| now < place.until)
    }

    pub(crate) fn hold_at(&self, now: Moment) -> Option<&Hold> {
        self.hold.as_ref().filter(|hold| hold.lives_at(now))
    }

    /// Stores the claim's hold for its ttl; a holder no longer waits.
    pub(crate) fn grant(&mut self, now: Moment, client: ClientId, claim: &Claim, tokens: TokenRange) -> Answer {
        self.drop_place(claim.owner);
        self.hold = Some(Hold::new(now, Some(client), claim, tokens));
        let lease = claim.lease(tokens);
        Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: self.is_wanted_at(now) }
    }

    /// Answers a claim on a lock that somebody else holds; tokens up to `drawn` were drawn.
    pub(crate) fn put_off(
        &mut self,
        now: Moment,
        client: ClientId,
        claim: &Claim,
        hold: &Hold,
        drawn: Option<FencingToken>,
    ) -> Answer {
        let (remaining, holder) = (Some(hold.until.since(now)), hold.shown());
        match claim.queueing {
            Queueing::Wanted => {
                let position = self.take_place(Place::new(now, client, claim));
                Answer::Queued { position, remaining, valid_for: place_for(claim.terms.ttl), holder, drawn }
            }
            Queueing::Unwanted => {
                self.drop_place(claim.owner);
                Answer::Busy { remaining, holder, drawn }
            }
        }
    }

    /// Refreshes the owner's place, or appends one. Returns its position, 1 for the next in line.
    fn take_place(&mut self, place: Place) -> u32 {
        let ahead = self.queue.iter().position(|other| other.owner == place.owner).unwrap_or(self.queue.len());
        match self.queue.get_mut(ahead) {
            Some(mine) => *mine = place,
            None => self.queue.push(place),
        }
        count(ahead).saturating_add(1)
    }

    pub(crate) fn drop_place(&mut self, owner: Owner) -> Option<Place> {
        let index = self.queue.iter().position(|place| place.owner == owner)?;
        Some(self.queue.remove(index))
    }

    /// Ends the hold and gives the lock to the first in the queue, whose places must all be live.
    ///
    /// The waiter gets the tokens that it asked for, for as long as its place lasts: if it has stopped meanwhile, the next
    /// one does not wait for a whole ttl. Tokens are drawn first, so that a failure changes nothing.
    pub(crate) fn hand_over(
        &mut self,
        now: Moment,
        name: &LockName,
        draw: impl FnOnce(Width) -> Result<TokenRange, BackendError>,
    ) -> Result<Option<HandOver>, BackendError> {
        let Some(width) = self.queue.first().map(|next| next.width) else {
            self.hold = None;
            return Ok(None);
        };
        let tokens = draw(width)?;
        let Place { owner, client, terms, note, .. } = self.queue.remove(0);
        let valid_for = place_for(terms.ttl);
        self.hold = Some(Hold { owner, tokens, until: now + valid_for, client: Some(client), note });
        let lease = Lease { name: name.clone(), owner, tokens, terms, slots: Slots::NONE };
        Ok(Some(HandOver { client, lease, valid_for, wanted: self.is_wanted_at(now) }))
    }

    pub(crate) fn entry_at(&self, now: Moment, name: &LockName) -> Option<Entry> {
        self.hold_at(now).map(|hold| Entry {
            name: name.clone(),
            holder: hold.shown(),
            remaining: Some(hold.until.since(now)),
            waiters: count(self.queue.iter().filter(|place| now < place.until).count()),
        })
    }
}

fn count(places: usize) -> u32 {
    u32::try_from(places).unwrap_or(u32::MAX)
}
