//! A request's visit to one lock: what it asks for, and whatever is handed over because of it.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::limit::{Act, Record, Request, Usage};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Event, Fairness, Holder, Lease, Limit, LockName, Mode, Moment, NameKind,
    Operation, Owner, Queueing, ReleaseRequest, Released, Slots, TokenRange,
};

use crate::BACKEND;
use crate::hand_over::{ClientId, HandOver, Hint, News};
use crate::holds::Hold;
use crate::lock::Lock;
use crate::queue::{Place, place_for};
use crate::refusal::{cannot_keep, cannot_replace, given_up, held_in_another_mode, nothing_to_replace};
use crate::tokens::LastToken;

/// How many waiters one visit serves at most; the next one is told to ask. Chosen: far more than usually fit, and little enough
/// work for a store that serves one request at a time.
const SERVED_MAX: usize = 32;

/// One lock during one request, without anything that is over.
pub(crate) struct Visit<'a> {
    pub(crate) now: Moment,
    pub(crate) name: &'a LockName,
    pub(crate) lock: &'a mut Lock,
    pub(crate) last_token: &'a mut LastToken,
    pub(crate) news: &'a mut News,
    /// The waiters that were served.
    pub(crate) served: Vec<HandOver>,
}

impl Visit<'_> {
    /// Grants the lock to the claim's owner, or says who holds it.
    pub(crate) fn acquire(&mut self, client: ClientId, claim: &Claim) -> Result<Answer, BackendError> {
        let claim = &self.checked(claim)?;
        self.serve(Some(claim.owner))?;
        match (self.lock.holds.get(claim.owner).map(|hold| hold.tokens), claim.replaces) {
            (Some(tokens), None) => Ok(self.grant_for(claim.owner, client, claim, tokens)),
            (Some(tokens), Some(old)) => {
                self.lock.refuse_late_claims(self.now, old, claim.terms.ttl);
                Ok(self.grant_for(claim.owner, client, claim, tokens))
            }
            (None, None) => self.ask(client, claim),
            (None, Some(old)) => self.replace(client, claim, old),
        }
    }

    /// The claim as it is served. Refuses one that was given up, and one whose mode does not suit what is stored.
    fn checked(&self, claim: &Claim) -> Result<Claim, BackendError> {
        if self.lock.was_given_up(claim.owner) {
            return Err(given_up());
        }
        let mode = self.served_as(claim)?;
        if let Some(used) = self.lock.mode().filter(|used| !used.suits(mode)) {
            return Err(BackendError::in_other_use(BACKEND, used, mode));
        }
        match self.lock.holds.get(claim.owner) {
            Some(hold) if hold.mode != mode => Err(held_in_another_mode()),
            Some(_) | None => Ok(claim.in_mode(mode)),
        }
    }

    /// The mode of a claim, under the limit in force. A lease that was granted goes on, whatever its limit was.
    fn served_as(&self, claim: &Claim) -> Result<Mode, BackendError> {
        let mode = claim.terms.mode;
        let Some(record) = self.lock.record() else { return Ok(mode) };
        if claim.replaces.is_some() || self.lock.holds.get(claim.owner).is_some() {
            return Ok(mode.under(record.limit()));
        }
        record.apply(BACKEND, mode)
    }

    /// Sets the limit, or looks at it.
    pub(crate) fn limit(&mut self, request: &Request) -> Result<Usage, BackendError> {
        let refused = |used| {
            Err(BackendError::in_other_use(BACKEND, used, Mode::one_permit(request.known))
                .of_operation(Operation::Limit))
        };
        let used = self.lock.mode();
        if let Some(lock) = used.filter(|used| used.limit().is_none()) {
            return refused(lock);
        }
        let limit = match (request.act, self.lock.record().map(Record::limit).or(used.and_then(Mode::limit))) {
            (Act::Set(limit), _) => {
                self.lock.set_limit(self.now, limit, request.known);
                self.serve_all();
                limit
            }
            (Act::Look, None) => request.known,
            (Act::Look, Some(limit)) if self.serves(request.known, limit) => limit,
            (Act::Look, Some(limit)) => return refused(Mode::one_permit(limit)),
        };
        Ok(Usage { limit, used: self.lock.holds.permits() })
    }

    /// Whether a request that knows this limit is served while another one is in force.
    fn serves(&self, known: Limit, in_force: Limit) -> bool {
        self.lock.record().map_or(known == in_force, |record| record.serves(known))
    }

    fn ask(&mut self, client: ClientId, claim: &Claim) -> Result<Answer, BackendError> {
        let is_next = self.lock.queue.first().is_none_or(|next| next.owner == claim.owner);
        let may_be_next = is_next || claim.fairness == Fairness::Barging;
        let fits = may_be_next && self.lock.holds.fits(claim.terms.mode);
        // Somebody holds if it does not fit: otherwise, the first waiter would have been served.
        let holder = self.lock.holds.living(self.now).next().filter(|_| !fits).map(Hold::shown);
        if let Some(holder) = holder {
            return Ok(self.put_off(client, claim, holder));
        }
        let tokens = self.last_token.draw(claim.width)?;
        let slots = self.lock.holds.add(Hold::new(self.now, Some(client), claim, tokens));
        Ok(self.granted(claim, tokens, slots))
    }

    /// Grants the claim and ends the old owner's lease, past the queue.
    fn replace(&mut self, client: ClientId, claim: &Claim, old: Owner) -> Result<Answer, BackendError> {
        let (held, mode) = (self.lock.holds.get(old).ok_or_else(nothing_to_replace)?.mode, claim.terms.mode);
        if !is_replaced_by(held, mode) {
            return Err(cannot_replace());
        }
        let other = self.lock.holds.living(self.now).find(|hold| hold.owner != old);
        if let Some(other) = other.filter(|_| mode == Mode::Exclusive) {
            let (holder, remaining) = (other.shown(), Some(other.until.since(self.now)));
            return Ok(Answer::Busy { remaining, holder, drawn: self.last_token.get() });
        }
        let tokens = self.last_token.draw(claim.width)?;
        self.lock.refuse_late_claims(self.now, old, claim.terms.ttl);
        Ok(self.grant_for(old, client, claim, tokens))
    }

    /// Stores the claim's hold for its ttl, instead of that of `old`.
    fn grant_for(&mut self, old: Owner, client: ClientId, claim: &Claim, tokens: TokenRange) -> Answer {
        let slots = self.lock.holds.replace(old, Hold::new(self.now, Some(client), claim, tokens));
        self.granted(claim, tokens, slots)
    }

    /// The answer to a claim whose hold is stored; a holder no longer waits.
    fn granted(&mut self, claim: &Claim, tokens: TokenRange, slots: Slots) -> Answer {
        self.lock.queue.drop_place(claim.owner);
        self.serve_all(); // who is served now no longer waits
        let wanted = self.lock.is_wanted_at(self.now);
        Answer::Granted { lease: claim.lease_of(tokens, slots), valid_for: claim.terms.ttl.get(), wanted }
    }

    /// Answers a claim that does not fit, or before which others wait.
    fn put_off(&mut self, client: ClientId, claim: &Claim, holder: Holder) -> Answer {
        let drawn = self.last_token.get();
        match claim.queueing {
            Queueing::Wanted => {
                let was_wanted = self.lock.is_wanted_at(self.now);
                let position = self.lock.queue.take_place(Place::new(self.now, client, claim));
                if !was_wanted {
                    self.tell_holders();
                }
                let (remaining, valid_for) = (self.remaining(claim), place_for(claim.terms.ttl));
                Answer::Queued { position, remaining, valid_for, holder, drawn }
            }
            Queueing::Unwanted => {
                self.lock.queue.drop_place(claim.owner);
                Answer::Busy { remaining: self.remaining(claim), holder, drawn }
            }
        }
    }

    /// How long until the first waiter, or the claim if nobody waits, fits at the earliest.
    fn remaining(&self, claim: &Claim) -> Option<Duration> {
        let mode = self.lock.queue.first().map_or(claim.terms.mode, |next| next.terms.mode);
        let fits_at = self.lock.holds.fits_at(mode).filter(|_| !self.lock.holds.fits(mode));
        fits_at.map(|until| until.since(self.now))
    }

    /// Tells each client that holds that somebody waits.
    fn tell_holders(&mut self) {
        let clients: BTreeSet<_> = self.lock.holds.living(self.now).filter_map(|hold| hold.client).collect();
        let event = Event::Wanted { name: self.name.clone() };
        self.news.hints.extend(clients.into_iter().map(|client| Hint { client, event: event.clone() }));
    }

    /// Ends the owner's hold, now or after the time for which the lock is to be kept, and drops its place.
    pub(crate) fn release(&mut self, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let owners = [request.owner, request.owner.kept()];
        let held = owners.into_iter().find_map(|owner| self.lock.holds.get(owner)).map(|hold| (hold.owner, hold.mode));
        if held.is_some_and(|(_, mode)| mode != Mode::Exclusive) && request.keep.is_some() {
            return Err(cannot_keep());
        }
        // An owner may have both: it kept the lock, and asked again.
        let place = self.lock.queue.drop_place(request.owner);
        let released = match (held, request.keep) {
            (Some((holder, _)), Some(keep)) => {
                self.keep(holder, request.owner, keep);
                Released::Released
            }
            (Some((holder, _)), None) => {
                self.lock.holds.remove(holder);
                Released::Released
            }
            (None, _) if place.is_some() => Released::Left,
            (None, _) => Released::NotHeld,
        };
        match request.certainty {
            Certainty::Answered => {}
            Certainty::Unknown => self.lock.refuse_late_claims(self.now, request.owner, request.terms.ttl),
        }
        Ok(released)
    }

    fn keep(&mut self, holder: Owner, owner: Owner, keep: Duration) {
        self.lock.holds.keep(self.now, holder, owner, keep);
        // It asks how long the lock is kept, and asks again then.
        self.tell_next();
    }

    /// Hands over what is free, and leaves word of everything that was.
    pub(crate) fn end(mut self) {
        self.serve_all();
        if self.served.len() == SERVED_MAX && self.next_that_fits().is_some() {
            self.tell_next();
        }
        let wanted = self.lock.is_wanted_at(self.now);
        self.news.hand_overs.extend(self.served.into_iter().map(|served| HandOver { wanted, ..served }));
    }

    fn tell_next(&mut self) {
        let next = self.lock.queue.first().map(|place| place.client);
        let event = Event::Freed { name: self.name.clone() };
        self.news.hints.extend(next.map(|client| Hint { client, event }));
    }

    fn next_that_fits(&self) -> Option<&Place> {
        self.lock.queue.first().filter(|next| self.lock.holds.fits(next.terms.mode))
    }

    /// Serves the waiters that fit. Once the tokens are used up, a waiter learns of it when it asks.
    fn serve_all(&mut self) {
        self.serve(None).ok();
    }

    /// Serves the waiters that fit, in their order, up to the one that asks itself.
    ///
    /// Each gets the tokens that it asked for, for as long as its place lasts: if it has stopped meanwhile, the next one does
    /// not wait for a whole ttl.
    fn serve(&mut self, before: Option<Owner>) -> Result<(), BackendError> {
        while self.served.len() < SERVED_MAX {
            let Some(next) = self.next_that_fits().filter(|next| Some(next.owner) != before) else { break };
            let (owner, tokens) = (next.owner, self.last_token.draw(next.width)?);
            let served = self.lock.queue.drop_place(owner).map(|place| self.hand_over(place, tokens));
            self.served.extend(served);
        }
        Ok(())
    }

    fn hand_over(&mut self, place: Place, tokens: TokenRange) -> HandOver {
        let Place { owner, client, terms, note, .. } = place;
        let valid_for = place_for(terms.ttl);
        let until = self.now + valid_for;
        let (granted, mode, slots) = (self.now, terms.mode, Slots::NONE);
        let hold = Hold { owner, tokens, until, granted, mode, slots, client: Some(client), note };
        let slots = self.lock.holds.add(hold);
        let lease = Lease { name: self.name.clone(), owner, tokens, terms, slots };
        HandOver { client, lease, valid_for, wanted: false }
    }
}

/// Which leases can be replaced in one step.
fn is_replaced_by(old: Mode, new: Mode) -> bool {
    let of_a_writer = old == Mode::Exclusive && new.name_kind() == NameKind::Lock;
    let of_a_reader = old == Mode::Shared && new.name_kind() == NameKind::Lock;
    let of_permits = old.suits(new) && (1..=old.count()).contains(&new.count());
    of_a_writer || of_a_reader || of_permits
}
