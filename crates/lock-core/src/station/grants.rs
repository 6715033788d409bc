//! Grants, by reply or by transfer, and what follows from them.

use super::Station;
use super::attempt::{Attempt, Grant, Place};
use super::progress::Progress;
use crate::policy::pace;
use crate::{AcquireError, BackendError, Effect, ErrorKind, Lease, Mode, Moment, Operation, Ttl};

/// This many stale grants in a row are a failure: the store answers too slowly for the ttl, and may continue to.
const STALE_ANSWERS_MAX: u32 = 3;

impl Station {
    /// Processes a grant, by reply or by transfer: admits a waiter, asks again, or gives the lease back.
    pub(super) fn on_grant(&mut self, now: Moment, mut attempt: Box<Attempt>, grant: Grant) {
        let (token, adopts) = (grant.lease.tokens.low(), attempt.adopts());
        if !attempt.is_granted_by(&grant.lease, &self.name) {
            self.on_ask_error(now, attempt, self.not_asked_for());
        } else if let Some(floor) = attempt.floor.filter(|floor| token <= *floor) {
            let name = self.name.clone();
            self.refuse_served(attempt.turn(), AcquireError::Forgotten { name, token, floor });
            self.release_attempt(now, &attempt);
        } else if self.waiter_of(&attempt).is_none() {
            self.release_attempt(now, &attempt);
        } else if self.is_outlived(&grant.lease) {
            if adopts {
                self.refuse_served(attempt.turn(), AcquireError::TicketOver { name: self.name.clone() });
            }
            self.release_attempt(now, &attempt);
        } else if self.meets_readers(now, &attempt, &grant) {
            self.on_second_lease(now, &attempt, &grant);
        } else if grant.is_stale(now) && adopts {
            self.on_ask_error(now, attempt, too_slow(grant.lease.terms.ttl));
        } else if grant.is_stale(now) {
            self.on_stale_grant(now, attempt, grant);
        } else {
            self.exchange(now, &mut attempt);
            self.admit_first(now, grant, &attempt);
            if attempt.tries > 0 && attempt.may_queue() {
                self.next_may_be_served(now);
            }
            // Its answer is still to come, and says how the lease stands.
            if attempt.progress.due().is_none() {
                self.attempts.push(attempt);
            }
        }
    }

    /// Whether the store no longer has this lease, because it granted one later that the two exclude. Only a lease that was
    /// adopted can come in between.
    pub(super) fn is_outlived(&self, granted: &Lease) -> bool {
        let token = granted.tokens.high();
        match granted.terms.mode {
            Mode::Exclusive => self.floor.here().is_some_and(|floor| granted.tokens.low() <= floor),
            Mode::Shared | Mode::Permits { .. } => {
                let leases = self.leases.iter().map(|held| &held.lease);
                leases.filter(|held| held.terms.mode == Mode::Exclusive).any(|held| token < held.tokens.low())
            }
        }
    }

    /// Asks again. If those answers are stale too, a waiter that does not wait is rejected after the second one, and the
    /// lease is given back after the last.
    fn on_stale_grant(&mut self, now: Moment, mut attempt: Box<Attempt>, grant: Grant) {
        attempt.place = Place::Queued;
        if attempt.progress.due().is_none() {
            attempt.was_granted(grant);
            self.attempts.push(attempt);
            return;
        }
        attempt.granted = Some(grant.lease.tokens.width());
        let error = too_slow(attempt.terms.ttl);
        if attempt.stale_answers > 1 {
            self.fail_impatient(now, &attempt, &error);
        }
        if attempt.stale_answers < STALE_ANSWERS_MAX {
            attempt.progress = Progress::Due(now + self.dice.jittered(pace::poll(0)));
            self.attempts.push(attempt);
        } else {
            self.release_attempt(now, &attempt);
            let next = self.with_next_owner(now, *attempt);
            self.retry(now, next, error);
        }
    }

    /// The store pushed a grant. When its validity began follows from the attempt.
    pub(super) fn on_transfer(&mut self, now: Moment, pushed: Grant) {
        // An owner that was drawn here belongs to an attempt or a lease, or was given up. In the last case, its release
        // also frees this grant. Any other owner belongs to another client of the same store, which wants its grant.
        if self.held_of(pushed.lease.owner).is_some() {
            return;
        }
        let waits = |attempt: &Attempt| attempt.owner == pushed.lease.owner && attempt.may_queue();
        let Some(mut attempt) = self.attempts.take(waits) else { return };
        let counts = !pushed.valid_for.is_zero() && !attempt.is_ahead_of(&pushed.lease);
        if counts {
            let grant = Grant { counted_from: attempt.counted_from, ..pushed };
            return self.on_grant(now, attempt, grant);
        }
        match &mut attempt.progress {
            Progress::InFlight(..) => attempt.was_granted(pushed),
            Progress::Due(at) => *at = now,
        }
        self.attempts.push(attempt);
    }
}

pub(super) fn too_slow(ttl: Ttl) -> BackendError {
    let message = format!("the store answers too slowly for a ttl of {ttl}");
    BackendError::new("backend", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
        .with_remedy("use a longer ttl")
}
