//! What the verbs mean: locks, queues and tokens as plain values, with the time as a parameter.
//!
//! Nothing here reads a clock, waits or sends. Each verb runs alone and to its end. [`Store::take_hand_overs`] returns what
//! other clients have to be told. At the moment at which something ends, it has ended.

use std::collections::BTreeMap;
use std::ops::Bound;

use lock_core::inspect::{Cursor, Entry, Page, Query, Revoked, glob_matches};
use lock_core::latch::{Request, Seen};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Event, Fenced, FencingToken, Invalid, Lease, LockName,
    Moment, Operation, Owner, ReleaseRequest, Released, Renewed, TokenRange, Width,
};

use crate::BACKEND;
pub use crate::hand_over::{ClientId, HandOver, Hint};
use crate::latches::Latches;
pub use crate::lock::Hold;
use crate::lock::Lock;

/// The reference store: all locks, one token counter, and the hand-overs that were not reported yet.
///
/// It does nothing by itself. When a lease ends while others wait, the lock passes on with the next acquire.
#[derive(Debug, Default)]
pub struct Store {
    last_token: LastToken,
    locks: BTreeMap<LockName, Lock>,
    latches: Latches,
    hand_overs: Vec<HandOver>,
    hints: Vec<Hint>,
}

/// The highest token that was ever drawn; 0 before the first.
#[derive(Debug, Default)]
struct LastToken(u64);

impl LastToken {
    fn get(&self) -> Option<FencingToken> {
        FencingToken::new(self.0).ok()
    }

    fn draw(&mut self, operation: Operation, width: Width) -> Result<TokenRange, BackendError> {
        let tokens = TokenRange::above(self.0, width).map_err(|invalid| used_up(operation, invalid))?;
        self.0 = tokens.high().get();
        Ok(tokens)
    }
}

impl Store {
    /// A store without locks, whose first token is 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Grants the lock to the claim's owner, or says who holds it.
    ///
    /// An owner that holds the lock gets the same tokens again and its full ttl. A lock that nobody holds goes to the
    /// first in the queue, and to the asking claim only if that is first or nobody waits. Otherwise a claim that
    /// wants to queue takes or refreshes its place, and one that does not loses the place it may have.
    ///
    /// A claim that replaces a lease is granted if that is the present one, and never otherwise; unless its owner holds the
    /// lock, because it was granted before.
    ///
    /// # Errors
    /// `Protocol` if the claim was given up by a release of unknown certainty, if there is nothing to replace, or if the
    /// tokens are used up. None of these changes anything.
    pub fn acquire(&mut self, now: Moment, client: ClientId, claim: &Claim) -> Result<Answer, BackendError> {
        if let Some(old) = claim.replaces {
            return self.replace(now, client, claim, old);
        }
        let lock = self.locks.entry(claim.name.clone()).or_default();
        lock.forget_what_is_over(now);
        if lock.tombstones.contains_key(&claim.owner) {
            return Err(given_up());
        }
        if lock.hold_at(now).is_none() && lock.queue.first().is_some_and(|next| next.owner != claim.owner) {
            let draw = |width| self.last_token.draw(Operation::Acquire, width);
            self.hand_overs.extend(lock.hand_over(now, &claim.name, draw)?);
        }
        match lock.hold_at(now) {
            None => Ok(lock.grant(now, client, claim, self.last_token.draw(Operation::Acquire, claim.width)?)),
            Some(hold) if hold.owner == claim.owner => Ok(lock.grant(now, client, claim, hold.tokens)),
            Some(hold) => {
                let (hold, was_wanted) = (hold.clone(), lock.is_wanted_at(now));
                let answer = lock.put_off(now, client, claim, &hold, self.last_token.get());
                let tell = |client| Hint { client, event: Event::Wanted { name: claim.name.clone() } };
                self.hints.extend(hold.client.filter(|_| !was_wanted && lock.is_wanted_at(now)).map(tell));
                Ok(answer)
            }
        }
    }

    fn replace(&mut self, now: Moment, client: ClientId, claim: &Claim, old: Owner) -> Result<Answer, BackendError> {
        let Some(lock) = self.locks.get_mut(&claim.name) else { return Err(nothing_to_replace()) };
        lock.forget_what_is_over(now);
        if lock.tombstones.contains_key(&claim.owner) {
            return Err(given_up());
        }
        let tokens = match lock.hold_at(now) {
            Some(hold) if hold.owner == claim.owner => hold.tokens,
            Some(hold) if hold.owner == old => self.last_token.draw(Operation::Acquire, claim.width)?,
            Some(_) | None => return Err(nothing_to_replace()),
        };
        lock.refuse_late_claims(now, old, claim.terms.ttl);
        Ok(lock.grant(now, client, claim, tokens))
    }

    /// Re-arms the ttl of each lease that is still stored. Returns the answers in the order of the leases. Never creates
    /// anything.
    pub fn renew(&mut self, now: Moment, leases: &[Lease]) -> Vec<Renewed> {
        leases.iter().map(|lease| self.renew_one(now, lease)).collect()
    }

    fn renew_one(&mut self, now: Moment, lease: &Lease) -> Renewed {
        let Some(lock) = self.locks.get_mut(&lease.name) else { return Renewed::NotHeld };
        let wanted = lock.is_wanted_at(now);
        match &mut lock.hold {
            Some(hold) if hold.lives_at(now) && hold.is(lease) => {
                hold.until = now + lease.terms.ttl.get();
                Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted }
            }
            Some(_) | None => Renewed::NotHeld,
        }
    }

    /// Ends the owner's hold and passes the lock on, now or after the time for which the lock is to be kept; or drops the
    /// owner's place. Touches nobody else's.
    ///
    /// If a claim of the owner may still be under way, such a claim is refused for the ttl, but for at least a second.
    ///
    /// # Errors
    /// `Protocol` if the tokens are used up; then nothing was changed.
    pub fn release(&mut self, now: Moment, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let lock = self.locks.entry(request.name.clone()).or_default();
        lock.forget_what_is_over(now);
        let released = match &mut lock.hold {
            Some(hold) if [request.owner, request.owner.kept()].contains(&hold.owner) => {
                let answer = if hold.lives_at(now) { Released::Released } else { Released::NotHeld };
                if let Some(keep) = request.keep.filter(|_| hold.lives_at(now)) {
                    hold.keep(now, request.owner, keep);
                    // It asks how long the lock is kept, and asks again then.
                    let next = lock.queue.first().map(|place| place.client);
                    let event = Event::Freed { name: request.name.clone() };
                    self.hints.extend(next.map(|client| Hint { client, event }));
                } else {
                    let draw = |width| self.last_token.draw(Operation::Release, width);
                    self.hand_overs.extend(lock.hand_over(now, &request.name, draw)?);
                }
                answer
            }
            Some(_) | None => match lock.drop_place(request.owner) {
                Some(_) => Released::Left,
                None => Released::NotHeld,
            },
        };
        match request.certainty {
            Certainty::Answered => {}
            Certainty::Unknown => {
                lock.refuse_late_claims(now, request.owner, request.terms.ttl);
            }
        }
        self.forget_if_empty(&request.name);
        Ok(released)
    }

    /// Returns whether the lease is still the stored grant.
    pub fn fence(&self, now: Moment, lease: &Lease) -> Fenced {
        match self.locks.get(&lease.name).and_then(|lock| lock.hold_at(now)) {
            Some(hold) if hold.is(lease) => Fenced::Acknowledged,
            Some(hold) if hold.tokens.low() > lease.tokens.high() => Fenced::Higher(hold.tokens.low()),
            Some(_) | None => Fenced::NotHeld,
        }
    }

    /// The hold of a lock, if somebody holds it now or it is kept.
    pub fn hold(&self, now: Moment, name: &LockName) -> Option<&Hold> {
        self.locks.get(name).and_then(|lock| lock.hold_at(now))
    }

    /// Who holds the lock now.
    pub fn holder(&self, now: Moment, name: &LockName) -> Option<Entry> {
        self.locks.get(name).and_then(|lock| lock.entry_at(now, name))
    }

    /// The held locks that match, in the order of their names.
    pub fn list(&self, now: Moment, query: &Query) -> Page {
        let begin = query.cursor.as_ref().map_or(Bound::Unbounded, |cursor| Bound::Excluded(cursor.0.as_str()));
        let mut matching = self
            .locks
            .range::<str, _>((begin, Bound::Unbounded))
            .filter(|(name, _)| glob_matches(&query.pattern, name.as_str()))
            .filter_map(|(name, lock)| lock.entry_at(now, name));
        // At least one, or the listing would never end.
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX).max(1);
        let entries: Vec<Entry> = matching.by_ref().take(limit).collect();
        let last = matching.next().and_then(|_| entries.last());
        let next = last.map(|entry| Cursor(entry.name.as_str().to_owned()));
        Page { entries, next }
    }

    /// Ends the lease that spans `token`, for any owner, and passes the lock on.
    ///
    /// # Errors
    /// `Protocol` if the tokens are used up; then nothing was changed.
    pub fn revoke(&mut self, now: Moment, name: &LockName, token: FencingToken) -> Result<Revoked, BackendError> {
        let Some(lock) = self.locks.get_mut(name) else { return Ok(Revoked::NotHeld) };
        let spans = |hold: &Hold| (hold.tokens.low()..=hold.tokens.high()).contains(&token);
        if !lock.hold_at(now).is_some_and(spans) {
            return Ok(Revoked::NotHeld);
        }
        lock.forget_what_is_over(now);
        let draw = |width| self.last_token.draw(Operation::Inspect, width);
        self.hand_overs.extend(lock.hand_over(now, name, draw)?);
        self.forget_if_empty(name);
        Ok(Revoked::Revoked)
    }

    /// Carries out a request about a latch, and answers with the latch as it is then. A client that looks and wants to be
    /// notified gets a hint when all have arrived, or when the latch is reset.
    pub fn latch(&mut self, now: Moment, client: ClientId, request: &Request) -> Seen {
        let (seen, told) = self.latches.ask(now, client, request);
        let event = || Event::LatchChanged { name: request.name.clone() };
        self.hints.extend(told.into_iter().map(|client| Hint { client, event: event() }));
        seen
    }

    /// The hand-overs since the last call, to be sent to their clients.
    pub fn take_hand_overs(&mut self) -> Vec<HandOver> {
        std::mem::take(&mut self.hand_overs)
    }

    /// The hints since the last call: to holders, that somebody began to wait; to those who watch a latch; and to the head of a queue, that it should ask
    /// how long the lock is kept.
    pub fn take_hints(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.hints)
    }

    fn forget_if_empty(&mut self, name: &LockName) {
        if self.locks.get(name).is_some_and(Lock::is_empty) {
            self.locks.remove(name);
        }
    }
}

pub(crate) fn given_up() -> BackendError {
    let message = "this claim was given up";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Protocol, Effect::None, message)
        .with_remedy("ask again as another owner")
}

fn nothing_to_replace() -> BackendError {
    let message = "the lease to replace is not held";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Protocol, Effect::None, message)
        .with_remedy("acquire the lock again")
}

pub(crate) fn used_up(operation: Operation, invalid: Invalid) -> BackendError {
    BackendError::new(BACKEND, operation, ErrorKind::Protocol, Effect::None, "the tokens are used up")
        .with_source(invalid)
        .with_remedy("start a new store, and let the resource forget the old one's tokens")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_up_tokens_are_an_error_that_changes_nothing() {
        let mut last = LastToken(FencingToken::MAX.get() - 1);
        let error = last.draw(Operation::Acquire, Width::MAX).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
        assert_eq!(last.draw(Operation::Acquire, Width::ONE).unwrap().high(), FencingToken::MAX);
    }
}
