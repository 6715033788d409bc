//! What the verbs mean: locks, queues and tokens as plain values, with the time as a parameter.
//!
//! Nothing here reads a clock, waits or sends. Each verb runs alone and to its end. [`Store::take_hand_overs`] returns what
//! other clients have to be told. At the moment at which something ends, it has ended.

use std::collections::BTreeMap;
use std::ops::Bound;

use lock_core::inspect::{Cursor, Entry, Page, Query, Revoked, glob_matches};
use lock_core::latch::{Request, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, BackendError, Claim, Event, Fenced, FencingToken, Lease, LockName, Mode, Moment, Note, Owner,
    ReleaseRequest, Released, Renewed,
};

use crate::hand_over::News;
pub use crate::hand_over::{ClientId, HandOver, Hint};
pub use crate::holds::Hold;
use crate::latches::Latches;
use crate::lock::Lock;
use crate::revocations::Revocations;
use crate::tokens::LastToken;
use crate::visit::Visit;

/// The reference store: all locks, one token counter, and the hand-overs that were not reported yet.
///
/// It does nothing by itself. When a lease ends while others wait, the lock passes on with the next acquire or release.
#[derive(Clone, Debug, Default)]
pub struct Store {
    last_token: LastToken,
    locks: BTreeMap<LockName, Lock>,
    latches: Latches,
    revocations: Revocations,
    news: News,
}

impl Store {
    /// A store without locks, whose first token is 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on, draws only tokens above this one, and gives higher numbers to new generations of latches. A simulator of a
    /// store that counts on from its clock uses this.
    pub fn raise_tokens(&mut self, floor: FencingToken) {
        self.last_token.raise(floor);
        self.latches.raise(floor.get());
    }

    /// The owners that hold or wait anywhere. Some may be over: nothing is forgotten until the next request about its lock.
    pub fn owners(&self) -> impl Iterator<Item = Owner> {
        self.locks.values().flat_map(Lock::owners)
    }

    /// Grants the lock to the claim's owner, or says who holds it.
    ///
    /// An owner that holds the lock gets the same tokens and slots again and its full ttl. Any other claim is granted if it
    /// fits beside the present holders and nobody waits before it:
    ///
    /// - An exclusive lease fits if nobody holds.
    /// - A shared one fits if all others are shared.
    /// - Permits fit if no more than the limit are taken with them.
    ///
    /// If the limit of a semaphore was set (see [`limit`]), a claim for permits is served under that.
    ///
    /// The waiters before it are served first, as far as they fit. A claim that is barging is then granted if it fits, although
    /// others wait that do not. A claim that is not granted takes or refreshes its place if
    /// it wants to queue, and loses the place that it may have if it does not.
    ///
    /// A claim that replaces a lease is granted past the queue, as [`Claim::replaces`] has it.
    ///
    /// # Errors
    /// `OtherKind` if the name is in use as the other kind, or as a semaphore of another limit, or if the claim is for more permits
    /// than the limit that was set. `Protocol` if the claim was
    /// given up by a release of unknown certainty, if its owner holds the lock in another mode, if it replaces what it cannot,
    /// or if the tokens are used up. `NotHeld` if the lease that it replaces
    /// is not held. None of these changes anything.
    pub fn acquire(&mut self, now: Moment, client: ClientId, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = self.visit(now, &claim.name, |visit| visit.acquire(client, claim));
        if answer.is_err() {
            self.forget_if_empty(&claim.name);
        }
        answer
    }

    fn visit<T>(&mut self, now: Moment, name: &LockName, request: impl FnOnce(&mut Visit<'_>) -> T) -> T {
        let Self { last_token, locks, news, .. } = self;
        let lock = locks.entry(name.clone()).or_default();
        lock.forget_what_is_over(now);
        let mut visit = Visit { now, name, lock, last_token, news, served: Vec::new() };
        let answer = request(&mut visit);
        visit.end();
        answer
    }

    /// Re-arms the ttl of each lease that is still stored. Returns the answers in the order of the leases. Never creates
    /// anything.
    pub fn renew(&mut self, now: Moment, leases: &[Lease]) -> Vec<Renewed> {
        leases.iter().map(|lease| self.renew_one(now, lease)).collect()
    }

    fn renew_one(&mut self, now: Moment, lease: &Lease) -> Renewed {
        let lock = self.locks.get_mut(&lease.name);
        let held =
            |lock: &&mut Lock| lock.holds.get(lease.owner).is_some_and(|hold| hold.lives_at(now) && hold.is(lease));
        let Some(lock) = lock.filter(held) else {
            let by = self.revoked_by(now, &lease.name, lease.tokens.high());
            return by.map_or(Renewed::NotHeld, |by| Renewed::Revoked { by });
        };
        let valid_for = lease.terms.ttl.get();
        lock.holds.extend(lease.owner, now + valid_for);
        Renewed::Renewed { valid_for, wanted: lock.is_wanted_at(now) }
    }

    /// Ends the owner's hold and passes the lock on, now or after the time for which the lock is to be kept; or drops the
    /// owner's place. Touches nobody else's. Then serves the waiters that fit, at most 32.
    ///
    /// If a claim of the owner may still be under way, such a claim is refused for the ttl, but for at least a second.
    ///
    /// # Errors
    /// `Protocol` if the lock is to be kept and the lease is not exclusive; then nothing was changed.
    pub fn release(&mut self, now: Moment, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let released = self.visit(now, &request.name, |visit| visit.release(request));
        self.forget_if_empty(&request.name);
        released
    }

    /// Returns whether the lease is still the stored grant.
    pub fn fence(&self, now: Moment, lease: &Lease) -> Fenced {
        let Some(lock) = self.locks.get(&lease.name) else { return Fenced::NotHeld };
        if lock.holds.get(lease.owner).is_some_and(|hold| hold.lives_at(now) && hold.is(lease)) {
            return Fenced::Acknowledged;
        }
        let later = |hold: &&Hold| hold.mode == Mode::Exclusive && hold.tokens.low() > lease.tokens.high();
        match lock.holds.living(now).next().filter(later) {
            Some(hold) => Fenced::Higher(hold.tokens.low()),
            None => Fenced::NotHeld,
        }
    }

    /// The holds of a lock, the one that ends last first; also that of a lock that is kept.
    pub fn holds(&self, now: Moment, name: &LockName) -> impl Iterator<Item = &Hold> {
        self.locks.get(name).into_iter().flat_map(move |lock| lock.holds.living(now))
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

    /// Ends the lease that spans `token`, for any owner, passes on what it held, and remembers who ended it.
    pub fn revoke(&mut self, now: Moment, name: &LockName, token: FencingToken, by: &Note) -> Revoked {
        let ended = self.visit(now, name, |visit| visit.lock.end(now, token));
        self.forget_if_empty(name);
        let Some(ended) = ended else { return Revoked::NotHeld };
        self.revocations.remember(now, name, &ended, by);
        Revoked::Revoked
    }

    /// Who revoked the lease whose highest token this is, if that is remembered.
    pub fn revoked_by(&self, now: Moment, name: &LockName, highest: FencingToken) -> Option<Note> {
        self.revocations.by(now, name, highest)
    }

    /// Sets the limit of a semaphore and hands over what is free under it, or looks at the semaphore.
    ///
    /// # Errors
    /// `OtherKind` if the name is in use as a lock; for a look, also as a semaphore of another limit. Nothing was changed.
    pub fn limit(&mut self, now: Moment, request: &limit::Request) -> Result<Usage, BackendError> {
        let usage = self.visit(now, &request.name, |visit| visit.limit(request));
        self.forget_if_empty(&request.name);
        usage
    }

    /// Carries out a request about a latch, and answers with the latch as it is then. A client that looks and wants to be
    /// notified gets a hint when all have arrived, or when the latch is reset.
    pub fn latch(&mut self, now: Moment, client: ClientId, request: &Request) -> Seen {
        let (seen, told) = self.latches.ask(now, client, request);
        let event = || Event::LatchChanged { name: request.name.clone() };
        self.news.hints.extend(told.into_iter().map(|client| Hint { client, event: event() }));
        seen
    }

    /// The hand-overs since the last call, to be sent to their clients.
    pub fn take_hand_overs(&mut self) -> Vec<HandOver> {
        std::mem::take(&mut self.news.hand_overs)
    }

    /// The hints since the last call: to holders, that somebody began to wait; to those who watch a latch; and to the head of a queue, that it should ask
    /// how long the lock is kept.
    pub fn take_hints(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.news.hints)
    }

    fn forget_if_empty(&mut self, name: &LockName) {
        if self.locks.get(name).is_some_and(Lock::is_empty) {
            self.locks.remove(name);
        }
    }
}
