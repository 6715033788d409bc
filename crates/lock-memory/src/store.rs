//! The store as plain values: locks, queues and tokens in maps, with the time as a parameter.
//!
//! Nothing here reads a clock, waits or sends. Each request runs alone and to its end. [`Store::take_notices`] returns what
//! clients are to be notified.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;

use lock_core::inspect::{Cursor, Entry, Page, Query, Revoked, glob_matches};
use lock_core::latch::{Request, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, BackendError, Claim, Fenced, FencingToken, Lease, LockName, Moment, Note, Owner, ReleaseRequest, Released,
    Renewed, StoreEvent,
};
pub use lock_rules::Hold;
use lock_rules::Undone;

use crate::latches::Latches;
use crate::lock::Lock;
pub use crate::notice::{ClientId, Notice};
use crate::revocations::Revocations;
use crate::rows::MemoryRows;

/// The reference store: all locks in maps, one token counter, and the notices that were not sent yet. `lock-rules` decides.
///
/// It does nothing by itself. When a lease ends while others wait, the lock passes on with the next acquire or release.
#[derive(Clone, Debug, Default)]
pub struct Store {
    last_token: u64,
    locks: BTreeMap<LockName, Lock>,
    latches: Latches,
    revocations: Revocations,
    notices: Vec<Notice>,
}

impl Store {
    /// A store without locks, whose first token is 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on, draws only tokens above this one, and gives higher numbers to new generations of latches. A simulator of a
    /// store that counts on from its clock uses this.
    pub fn raise_tokens(&mut self, floor: FencingToken) {
        self.last_token = self.last_token.max(floor.get());
        self.latches.raise(floor.get());
    }

    /// The owners that hold or wait anywhere. Some may have expired: nothing is forgotten until the next request about its lock.
    pub fn owners(&self) -> impl Iterator<Item = Owner> {
        self.locks.values().flat_map(Lock::owners)
    }

    /// Runs a request on the rows of a lock.
    pub(crate) fn visit<T>(
        &mut self,
        now: Moment,
        name: &LockName,
        request: impl FnOnce(&mut MemoryRows<'_>) -> T,
    ) -> T {
        let Self { last_token, locks, revocations, notices, .. } = self;
        let lock = locks.entry(name.clone()).or_default();
        lock.forget_expired(now);
        let answer = request(&mut MemoryRows { now, name, lock, last_token, revocations, notices });
        if lock.is_empty() {
            locks.remove(name);
        }
        answer
    }

    /// Grants the lock to the claim's owner, or says who holds it. See [`lock_rules::acquire`].
    ///
    /// # Errors
    /// Those of the rules. None of them changes anything.
    pub fn acquire(&mut self, now: Moment, client: ClientId, claim: &Claim) -> Result<Answer, BackendError> {
        self.visit(now, &claim.name, |rows| lock_rules::acquire(rows, client, claim)).map_err(refused)
    }

    /// Re-arms the ttl of each lease that is still stored. Returns the answers in the order of the leases. Never creates
    /// anything.
    pub fn renew(&mut self, now: Moment, leases: &[Lease]) -> Vec<Renewed> {
        leases.iter().map(|lease| self.renew_one(now, lease)).collect()
    }

    fn renew_one(&mut self, now: Moment, lease: &Lease) -> Renewed {
        let Ok(renewed) = self.visit(now, &lease.name, |rows| lock_rules::renew(rows, lease));
        renewed
    }

    /// Ends the owner's lease or drops its place. See [`lock_rules::release`].
    ///
    /// # Errors
    /// Those of the rules. None of them changes anything.
    pub fn release(&mut self, now: Moment, request: &ReleaseRequest) -> Result<Released, BackendError> {
        self.visit(now, &request.name, |rows| lock_rules::release(rows, request)).map_err(refused)
    }

    /// Returns whether the lease is still the stored grant.
    pub fn fence(&mut self, now: Moment, lease: &Lease) -> Fenced {
        let Ok(fenced) = self.visit(now, &lease.name, |rows| lock_rules::fence(rows, lease));
        fenced
    }

    /// The leases of a lock, the one that ends last first; also that of a lock that is kept.
    pub fn holds(&self, now: Moment, name: &LockName) -> impl Iterator<Item = &Hold> {
        self.locks.get(name).into_iter().flat_map(move |lock| lock.holds.living(now))
    }

    /// Who holds the lock now.
    pub fn holder(&mut self, now: Moment, name: &LockName) -> Option<Entry> {
        self.visit(now, name, |rows| rows.lock.entry(now, name))
    }

    /// The held locks that match, in the order of their names.
    pub fn list(&mut self, now: Moment, query: &Query) -> Page {
        // At least one, or the listing would never end.
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX).max(1);
        let mut entries: Vec<Entry> = Vec::new();
        let mut after = query.cursor.as_ref().map(|cursor| cursor.0.clone());
        while let Some(name) = self.next_match(&query.pattern, after.as_deref()) {
            let entry = self.holder(now, &name);
            if entry.is_some() && entries.len() == limit {
                let next = entries.last().map(|last| Cursor(last.name.as_str().to_owned()));
                return Page { entries, next };
            }
            entries.extend(entry);
            after = Some(name.as_str().to_owned());
        }
        Page { entries, next: None }
    }

    fn next_match(&self, pattern: &str, after: Option<&str>) -> Option<LockName> {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut later = self.locks.range::<str, _>((begin, Bound::Unbounded)).map(|(name, _)| name);
        later.find(|name| glob_matches(pattern, name.as_str())).cloned()
    }

    /// Ends the lease that spans `token`, for any owner, passes on what it held, and remembers who ended it.
    pub fn revoke(&mut self, now: Moment, name: &LockName, token: FencingToken, by: &Note) -> Revoked {
        let Ok(revoked) = self.visit(now, name, |rows| lock_rules::revoke(rows, name, token, by));
        revoked
    }

    /// Who revoked the lease whose highest token this is, if that is remembered.
    pub fn revoked_by(&self, now: Moment, name: &LockName, highest: FencingToken) -> Option<Note> {
        self.revocations.by(now, name, highest)
    }

    /// Sets the limit of a semaphore and hands over what is free under it, or looks at the semaphore.
    ///
    /// # Errors
    /// Those of the rules. None of them changes anything.
    pub fn limit(&mut self, now: Moment, request: &limit::Request) -> Result<Usage, BackendError> {
        self.visit(now, &request.name, |rows| lock_rules::limit(rows, request)).map_err(refused)
    }

    /// Carries out a request about a latch, and answers with the latch as it is then. A client that looks and wants to be
    /// notified gets a notice when all have arrived, or when the latch is reset.
    pub fn latch(&mut self, now: Moment, client: ClientId, request: &Request) -> Seen {
        let (seen, clients) = self.latches.ask(now, client, request);
        let event = || StoreEvent::LatchChanged { name: request.name.clone() };
        self.notices.extend(clients.into_iter().map(|client| Notice { client, event: event() }));
        seen
    }

    /// The notices since the last call, to be sent to their clients.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

fn refused(undone: Undone<Infallible>) -> BackendError {
    let Undone::Refused(error) = undone;
    error
}
