//! The scripts, as values: what each does to the keys, step by step as in `docs/wire.md`. Each runs alone.

use std::time::Duration;

use lock_core::inspect::{REMEMBERED_MIN, Revoked};
use lock_core::{
    Answer, Certainty, Claim, Evidence, Fenced, FencingToken, Lease, LockName, Moment, Owner, ReleaseRequest, Released,
    Renewed, Slots, StoreEvent, Terms, TokenRange, Ttl, Width,
};

use super::database::{Database, Detail, RunId};
use super::keys::{Kept, Keys, Stored};
use super::queue::{PLACE_MAX, Waiter};
use crate::one::{Inbox, Listeners, Millis, Mistake, Refused, Seat, micros, millis, operator};

/// The shortest that a tombstone lives.
const TOMBSTONE_MIN: Millis = 10_000;
/// How far ahead of the clock a floor may raise the counter: a day.
const AHEAD_MAX: u64 = 86_400_000_000;

/// One script while it runs.
pub(crate) struct Script<'a> {
    pub(crate) data: &'a mut Database,
    pub(crate) now: Moment,
    pub(crate) listeners: &'a Listeners,
    pub(crate) mistake: Option<Mistake>,
    pub(crate) detail: Detail,
    /// What it publishes.
    pub(crate) published: Vec<(Inbox, StoreEvent)>,
    /// What it newly granted, to any client.
    pub(crate) granted: Vec<Lease>,
}

impl Script<'_> {
    pub(crate) fn acquire(&mut self, claim: &Claim, seat: Seat) -> Result<Answer, Refused> {
        let now = millis(self.now);
        let keys = self.keys(&claim.name);
        if keys.tombstones.contains_key(&claim.owner) {
            return Err(Refused::GivenUp);
        }
        if let Some(lease) = self.again(claim) {
            let wanted = self.is_wanted(&claim.name);
            return Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted });
        }
        if self.keys(&claim.name).lock.is_none() {
            if self.dwells() {
                return Err(Refused::Dwells);
            }
            self.hand_over(&claim.name, Some(claim.owner), claim.terms.ttl);
        }
        if let Some(held) = self.keys(&claim.name).lock.clone() {
            return Ok(self.put_off(claim, seat, &held));
        }
        let tokens = self.draw(claim.width, claim.floor).ok_or(Refused::Spent)?;
        let lease = claim.lease(tokens);
        let value = Stored::Ours { owner: claim.owner, tokens, note: claim.note.clone() };
        self.keys(&claim.name).lock = Some(Kept { value, ends: now + claim.terms.ttl.as_millis() });
        self.granted.push(lease.clone());
        let wanted = self.is_wanted(&claim.name);
        Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted })
    }

    /// The owner already holds: its ttl is re-armed and its place dropped.
    fn again(&mut self, claim: &Claim) -> Option<Lease> {
        let (now, mistake) = (millis(self.now), self.mistake);
        let keys = self.keys(&claim.name);
        let lock = keys.lock.as_mut().filter(|lock| lock.value.owner() == Some(claim.owner))?;
        if mistake != Some(Mistake::NotRearmed) {
            lock.ends = now + claim.terms.ttl.as_millis();
        }
        let tokens = lock.value.tokens()?;
        keys.leave(claim.owner);
        Some(claim.lease(tokens))
    }

    /// Somebody else holds: the claim's place is taken, refreshed or dropped.
    fn put_off(&mut self, claim: &Claim, seat: Seat, held: &Kept<Stored>) -> Answer {
        let (now, drawn) = (millis(self.now), self.drawn());
        let remaining = Some(Duration::from_millis(held.ends - now));
        let holder = held.value.shown();
        let place = place_of(claim.terms.ttl);
        let inbox = match seat {
            Seat::Unwanted => {
                self.keys(&claim.name).leave(claim.owner);
                return Answer::Busy { remaining, holder, drawn };
            }
            Seat::Told(inbox) if self.listeners.is_heard(inbox) => Some(inbox),
            Seat::Told(_) | Seat::Silent => None,
        };
        let Claim { owner, terms, width, floor, .. } = *claim;
        let waiter = Waiter { owner, over: now + place, ttl: terms.ttl, width, floor, inbox, note: claim.note.clone() };
        let was_wanted = self.is_wanted(&claim.name);
        let position = self.keys(&claim.name).seat(now, place, waiter);
        if !was_wanted && self.is_wanted(&claim.name) {
            // The inbox does not say who holds, so a hint may reach no holder.
            let wanted = |inbox| (inbox, StoreEvent::Wanted { name: claim.name.clone() });
            self.published.extend(self.listeners.inboxes().map(wanted));
        }
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let said = match (seat, inbox) {
            (Seat::Told(_), None) => place.min(UNHEARD_MIN.max(UNHEARD_STEP * Millis::from(position))),
            (Seat::Told(_) | Seat::Silent | Seat::Unwanted, _) => place,
        };
        Answer::Queued { position, remaining, valid_for: Duration::from_millis(said), holder, drawn }
    }

    pub(crate) fn release(&mut self, request: &ReleaseRequest) -> Released {
        let now = millis(self.now);
        let keys = self.keys(&request.name);
        let released = if keys.lock.as_ref().is_some_and(|lock| lock.value.owner() == Some(request.owner)) {
            self.free(&request.name, request.terms.ttl, request.evidence);
            Released::Released
        } else {
            let released = if keys.leave(request.owner) { Released::Left } else { Released::NotHeld };
            // If the lock has expired, nobody may have asked for it since.
            if keys.lock.is_none() && !self.dwells() {
                self.hand_over(&request.name, None, request.terms.ttl);
            }
            released
        };
        if request.certainty == Certainty::Unknown {
            let life = request.terms.ttl.as_millis().max(TOMBSTONE_MIN);
            self.keys(&request.name).tombstones.insert(request.owner, now + life);
        }
        released
    }

    pub(crate) fn renew(&mut self, leases: &[Lease]) -> Vec<Renewed> {
        leases.iter().map(|lease| self.renew_one(lease)).collect()
    }

    fn renew_one(&mut self, lease: &Lease) -> Renewed {
        let (now, wanted) = (millis(self.now), self.is_wanted(&lease.name));
        let keys = self.keys(&lease.name);
        match &mut keys.lock {
            Some(lock) if lock.value.owner() == Some(lease.owner) && lock.value.tokens() == Some(lease.tokens) => {
                lock.ends = now + lease.terms.ttl.as_millis();
                Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted }
            }
            Some(_) | None if keys.revocations.contains_key(&lease.tokens.high()) => {
                Renewed::Revoked { by: operator() }
            }
            Some(_) | None => Renewed::NotHeld,
        }
    }

    pub(crate) fn fence(&mut self, lease: &Lease) -> Fenced {
        let Some(lock) = &self.keys(&lease.name).lock else { return Fenced::NotHeld };
        match lock.value.tokens() {
            Some(tokens) if lock.value.owner() == Some(lease.owner) && tokens == lease.tokens => Fenced::Acknowledged,
            Some(tokens) if tokens.low() > lease.tokens.high() => Fenced::Higher(tokens.low()),
            Some(_) | None => Fenced::NotHeld,
        }
    }

    pub(crate) fn revoke(&mut self, name: &LockName, token: FencingToken) -> Revoked {
        let until = millis(self.now + REMEMBERED_MIN);
        let held = self.keys(name).lock.as_ref().and_then(|lock| Some((lock.value.tokens()?, lock.ends)));
        let spans = |tokens: TokenRange| tokens.contains(token);
        let Some((tokens, ends)) = held.filter(|(tokens, _)| spans(*tokens)) else { return Revoked::NotHeld };
        self.free(name, Ttl::DEFAULT, Evidence::Nothing);
        self.keys(name).revocations.insert(tokens.high(), ends.max(until));
        let revoked = |inbox| (inbox, StoreEvent::Revoked { name: name.clone() });
        self.published.extend(self.listeners.inboxes().map(revoked));
        Revoked::Revoked
    }

    /// Raises the counter if the server is not the one that was last verified.
    pub(crate) fn verify(&mut self, run_id: RunId) {
        if self.mistake == Some(Mistake::Unverified) || self.data.marker == Some(run_id) {
            return;
        }
        self.data.counter = Some(self.data.counter.unwrap_or(0).max(micros(self.now)));
        self.data.marker = Some(run_id);
    }

    fn free(&mut self, name: &LockName, ttl: Ttl, evidence: Evidence) {
        self.keys(name).lock = None;
        if evidence == Evidence::ValidHold || !self.dwells() {
            self.hand_over(name, None, ttl);
        }
    }

    fn dwells(&self) -> bool {
        self.data.dwell.is_some_and(|ends| millis(self.now) <= ends)
    }

    /// Hands a lock that nobody holds over to the first live waiter, unless `me` comes first. `ttl` is the caller's,
    /// and not used.
    fn hand_over(&mut self, name: &LockName, me: Option<Owner>, ttl: Ttl) {
        let (now, listeners) = (millis(self.now), self.listeners);
        let lives =
            |waiter: &Waiter| !waiter.is_over(now) && waiter.inbox.is_none_or(|inbox| listeners.is_heard(inbox));
        let Some(waiter) = self.keys(name).take_first(me, lives) else { return };
        if Some(waiter.owner) == me {
            return;
        }
        let Some(tokens) = self.draw(waiter.width, waiter.floor) else { return };
        let place = place_of(waiter.ttl);
        let life = if self.mistake == Some(Mistake::ReleasersTtl) { ttl.as_millis() } else { place };
        let (owner, terms) = (waiter.owner, Terms::exclusive(waiter.ttl));
        let lease = Lease { name: name.clone(), owner, tokens, terms, slots: Slots::NONE };
        let value = Stored::Ours { owner, tokens, note: waiter.note };
        self.keys(name).lock = Some(Kept { value, ends: now + life });
        self.granted.push(lease.clone());
        if let Some(inbox) = waiter.inbox {
            let (valid_for, wanted) = (Duration::from_millis(place), self.is_wanted(name));
            self.published.push((inbox, StoreEvent::Granted { lease, valid_for, wanted }));
        }
    }

    /// `SET key value NX PX life`. Returns whether the lock was free.
    pub(crate) fn foreign_set(&mut self, name: &LockName, value: u64, life: Millis) -> bool {
        let ends = millis(self.now) + life;
        let lock = &mut self.keys(name).lock;
        let is_free = lock.is_none();
        if is_free {
            *lock = Some(Kept { value: Stored::Foreign(value), ends });
        }
        is_free
    }

    /// Compare and delete. Returns whether it was there.
    pub(crate) fn foreign_delete(&mut self, name: &LockName, value: u64) -> bool {
        self.keys(name).lock.take_if(|lock| lock.value == Stored::Foreign(value)).is_some()
    }

    fn draw(&mut self, width: Width, floor: Option<FencingToken>) -> Option<TokenRange> {
        let floor = floor.map_or(0, FencingToken::get);
        let mut last = self.data.counter.unwrap_or(0);
        if last == 0 || last < floor {
            let clock = micros(self.now);
            last = last.max(clock).max(floor.min(clock + AHEAD_MAX));
        }
        let tokens = TokenRange::above(last, width).ok()?;
        self.data.counter = Some(tokens.high().get());
        Some(tokens)
    }

    /// Whether somebody waits, if answers report that.
    fn is_wanted(&mut self, name: &LockName) -> bool {
        let now = millis(self.now);
        let queue = self.keys(name).queue.as_ref();
        let waits = queue.is_some_and(|queue| queue.value.waiters().any(|waiter| !waiter.is_over(now)));
        self.detail == Detail::Full && waits
    }

    /// The highest token that was drawn, if answers report that.
    fn drawn(&self) -> Option<FencingToken> {
        match (self.detail, self.mistake) {
            (Detail::AsRedis, _) => None,
            (Detail::Full, Some(Mistake::DrawnForgotten)) => FencingToken::new(1).ok(),
            (Detail::Full, _) => self.data.counter.and_then(|counter| FencingToken::new(counter).ok()),
        }
    }

    fn keys(&mut self, name: &LockName) -> &mut Keys {
        let keys = self.data.locks.entry(name.clone()).or_default();
        keys.forget_what_is_over(millis(self.now));
        keys
    }
}

/// How long the backend reports that a place lasts if nobody listens on its inbox, multiplied by its position, so that
/// its owner polls.
const UNHEARD_STEP: Millis = 30;
/// The least that is reported, near the head of the queue.
const UNHEARD_MIN: Millis = 300;

/// How long a place lasts, and a lease that was handed over to it.
fn place_of(ttl: Ttl) -> Millis {
    ttl.as_millis().min(PLACE_MAX)
}
