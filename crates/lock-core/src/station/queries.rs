//! Read-only queries: what is held, who holds it, what fails, and when to tick next.

use super::Station;
use super::attempt::{Attempt, LeaseUse};
use super::held_lease::HeldLease;
use crate::{BackendError, Holder, Moment, Owner};

impl Station {
    /// The lease of a lock that local waiters pass on or share, if it is held. Beside it there may be private ones.
    pub(super) fn common(&self) -> Option<&HeldLease> {
        self.leases.iter().find(|held| held.usage == LeaseUse::PassedOn)
    }

    pub(super) fn lease_of(&self, owner: Owner) -> Option<&HeldLease> {
        self.leases.iter().find(|held| held.lease.owner == owner)
    }

    /// Why the store does not grant the lock to its waiters, if it fails: the error of the latest request.
    #[must_use]
    pub fn last_error(&self) -> Option<&BackendError> {
        self.last_error_of(self.first_attempt())
    }

    pub(super) fn last_error_of<'a>(&'a self, attempt: Option<&'a Attempt>) -> Option<&'a BackendError> {
        let adopts = attempt.is_some_and(Attempt::adopts);
        match (self.common().filter(|_| !adopts), attempt) {
            _ if self.closed => None,
            (Some(held), _) if held.refresh_asked_at.is_some() => held.last_error.as_ref(),
            (Some(held), _) if !held.is_shared() => None,
            (_, Some(Attempt { last_error: Some(last_error), .. })) => Some(last_error),
            (None, Some(_)) if adopts => None,
            (Some(_), _) | (None, Some(Attempt { holder: Some(_), .. })) => None,
            (None, Some(_) | None) => self.releases.last_error(),
        }
    }

    /// Who holds the lock, as far as is known here.
    #[must_use]
    pub fn known_holder(&self) -> Option<Holder> {
        self.holder_known_to(self.first_attempt())
    }

    pub(super) fn holder_known_to(&self, attempt: Option<&Attempt>) -> Option<Holder> {
        match self.common().filter(|_| !attempt.is_some_and(Attempt::adopts)) {
            Some(held) => held.as_holder(),
            None => attempt?.holder.clone(),
        }
    }

    /// The attempt for the front waiter.
    pub(super) fn first_attempt(&self) -> Option<&Attempt> {
        let first = self.waiters.iter().next().map(|waiter| waiter.join.turn);
        let is_first = |attempt: &Attempt| attempt.turn().is_none() || attempt.turn() == first;
        self.attempts.iter().find(|attempt| attempt.may_queue() && is_first(attempt))
    }

    /// When to tick next, if nothing happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        let claims = self.attempts.iter().filter_map(|attempt| self.ask_at(attempt)).min();
        let abandoned = self.attempts.iter().filter_map(|attempt| self.abandoned_until(attempt)).min();
        let leases = self.leases.iter().map(HeldLease::turns_until).min();
        let adopters = self.adopters.as_ref().and_then(|queue| queue.next_deadline());
        let others = [self.waiters.next_deadline(), adopters, self.next_long(), self.releases.next_due()];
        [claims, abandoned, leases].into_iter().chain(others).flatten().min()
    }

    /// Whether there are no waiters, no holder and no requests in flight. Dropping an idle station forgets nothing but its
    /// floor, and not even that if the floor is shared.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let nobody_asks = self.nobody_waits() && self.attempts.iter().all(Attempt::is_given_up);
        nobody_asks && self.leases.is_empty() && self.releases.0.is_empty()
    }

    /// Whether this station may have made the owner known to the store: the owner asks or holds, or its release has not
    /// been answered yet.
    #[must_use]
    pub fn knows(&self, owner: Owner) -> bool {
        let asks = |attempt: &Attempt| attempt.owner == owner && !attempt.is_given_up();
        self.lease_of(owner).is_some()
            || self.attempts.iter().any(asks)
            || self.last_asked == Some(owner)
            || self.releases.has(owner)
    }

    /// Whether others are known to wait for the lock that is held here. A hint: it may be late, and no longer true.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.leases.iter().any(|held| held.wanted)
    }
}
