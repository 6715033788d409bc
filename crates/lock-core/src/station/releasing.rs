//! Releasing: each release is sent until it is answered, or until the lease is over anyway. Where entries end with a session, it is
//! sent until it is answered or the session has ended. Also: giving attempts up, which releases their owners.

use std::time::Duration;

use super::Station;
use super::attempt::{Attempt, LeaseUse, Place, Purpose};
use super::held_lease::HeldLease;
use super::io::{Action, ActionId, ForWhom, Output, Request, TurnId};
use super::observed::ReportedHold;
use super::progress::Progress;
use super::releases::{NextClaim, Of, PendingRelease};
use crate::policy::{ABANDONED_CLAIM_FOR, ATTEMPTS_MAX, pace};
use crate::{Answer, BackendError, Certainty, Effect, Evidence, Moment, NameKind, Owner, ReleaseRequest, Released};

impl Station {
    /// Whether the next claim would be a new owner's, and a release has to be answered first.
    pub(super) fn is_held_back(&self) -> bool {
        match (self.common(), self.front_attempt()) {
            (Some(held), _) if !held.is_shared() => false,
            (_, Some(attempt)) => self.has_to_wait(attempt),
            (_, None) => self.is_release_due(self.next()),
        }
    }

    /// Whether an attempt has to wait before it asks: for a release, or for a waiter that came earlier.
    pub(super) fn has_to_wait(&self, attempt: &Attempt) -> bool {
        let (usage, mode) = (attempt.usage(), attempt.may_queue().then_some(attempt.terms.mode));
        let owes = || self.is_release_due(NextClaim { usage, mode, most: self.owed_most(usage) });
        let overtakes = || attempt.place == Place::Outside && self.would_overtake(attempt);
        attempt.is_unknown_to_store() && owes() || overtakes()
    }

    /// Whether a release has to be answered before this claim goes out.
    pub(super) fn is_release_due(&self, next: NextClaim) -> bool {
        self.releases.come_before(&self.policy, next)
    }

    /// The claim of the next waiter.
    pub(super) fn next(&self) -> NextClaim {
        let usage = match self.kind {
            NameKind::Lock | NameKind::ReadWriteLock => LeaseUse::PassedOn,
            NameKind::Semaphore => LeaseUse::Private,
        };
        let mode = self.waiters.terms().map(|terms| terms.mode);
        NextClaim { usage, mode, most: self.owed_most(usage) }
    }

    /// With this many pending releases of leases that are used alike, nothing new is asked. Each attempt that the store may know can
    /// end in one more; so can the lease that is passed on, and its replacement.
    pub(super) fn owed_most(&self, usage: LeaseUse) -> usize {
        let replaced = |held: &HeldLease| usize::from(self.replacement_of(held.lease.owner).is_some());
        let (most, held) = match usage {
            LeaseUse::Private => (self.policy.owed_max.saturating_add(ATTEMPTS_MAX - 1), 0),
            LeaseUse::PassedOn => (self.policy.owed_max, self.common().map_or(0, |held| 1 + replaced(held))),
        };
        most.saturating_sub(held + self.known_attempts(usage))
    }

    /// Whether the lease of this owner may be replaced now. That may end in two releases. An earlier claim of the owner has to be
    /// answered first.
    pub(super) fn may_replace(&self, owner: Owner) -> bool {
        let Some(held) = self.lease_of(owner) else { return true };
        let owed = self.releases.count(held.usage) + if held.usage == LeaseUse::Private { 2 } else { 0 };
        owed <= self.owed_most(held.usage) && self.attempts.iter().all(|attempt| attempt.owner != owner)
    }

    /// Repeats the release that holds claims back at once, unless it is in flight.
    pub(super) fn repeat_release_now(&mut self, now: Moment) {
        let next = self.next();
        self.releases.repeat_now(now, &self.policy, next);
    }

    /// Has the store release what it may keep for an attempt: a place, a grant, or a claim that may still be in flight. The waiter that
    /// was refused last may still be there to send the release, as its process may end now.
    pub(super) fn release_attempt(&mut self, now: Moment, attempt: &Attempt) {
        let (name, owner, terms, certainty) = (self.name.clone(), attempt.owner, attempt.terms, attempt.certainty());
        let request = ReleaseRequest { name, owner, terms, certainty, keep: None, evidence: Evidence::Nothing };
        let turn = attempt.turn().or(self.last_refused);
        self.release(now, request, (Of::Claim, attempt.usage()), turn.map_or(ForWhom::Nobody, ForWhom::Turn), None);
    }

    /// Has the store release what an owner has there. A turn that holds gets the outcome of the first try.
    pub(super) fn release(
        &mut self,
        now: Moment,
        request: ReleaseRequest,
        (of, usage): (Of, LeaseUse),
        for_whom: ForWhom,
        ended: Option<ReportedHold>,
    ) {
        let over_at = now + self.policy.owed_for(request.terms.ttl);
        let (progress, kept_until) = (Progress::Due(now), request.keep.map(|keep| now + keep));
        let turn = match for_whom {
            ForWhom::Turn(turn) if of != Of::Claim => Some(turn),
            ForWhom::Turn(_) | ForWhom::AnyWaiter | ForWhom::Nobody => None,
        };
        let (tries, last_error, stalled) = (0, None, None);
        let pending = PendingRelease {
            request,
            of,
            usage,
            turn,
            ended,
            progress,
            tries,
            over_at,
            kept_until,
            last_error,
            stalled,
        };
        self.send(now, Box::new(pending), for_whom);
    }

    fn send(&mut self, now: Moment, mut pending: Box<PendingRelease>, for_whom: ForWhom) {
        pending.request.keep = pending.kept_until.map(|end| end.since(now)).filter(|left| !left.is_zero());
        if pending.tries > 0 {
            pending.request.evidence = Evidence::Nothing;
        }
        pending.progress = self.run(now, Request::Release(pending.request.clone()), pending.request.terms, for_whom);
        self.releases.push(pending);
    }

    /// The releases that nobody awaits and that have had no answer for this long, each once. A facade whose tasks may not be polled
    /// sends them another way as well: the first answer counts, and the second one changes nothing. Also returns when the first of
    /// the others was handed out.
    pub fn stalled_releases(
        &mut self,
        now: Moment,
        silent_for: Duration,
        mut is_awaited: impl FnMut(TurnId) -> bool,
    ) -> (Vec<Action>, Option<Moment>) {
        let (mut stalled, mut next) = (Vec::new(), None);
        for (pending, id, at) in self.releases.unanswered() {
            if pending.turn.is_some_and(&mut is_awaited) {
                continue;
            }
            if now < at + silent_for {
                next = next.into_iter().chain([at]).min();
                continue;
            }
            pending.stalled = Some(id);
            let keep = pending.kept_until.map(|end| end.since(now)).filter(|left| !left.is_zero());
            // By now the lease may have expired.
            let request = ReleaseRequest { keep, evidence: Evidence::Nothing, ..pending.request.clone() };
            let within = self.policy.within(request.terms.ttl);
            stalled.push(Action { id, request: Request::Release(request), within, for_whom: ForWhom::Nobody });
        }
        (stalled, next)
    }

    pub(super) fn repeat_releases(&mut self, now: Moment) {
        while let Some(pending) = self.releases.take_due(now) {
            if now < pending.over_at || self.has_session() {
                self.send(now, pending, ForWhom::Nobody);
            } else {
                self.report_given_up(&pending);
            }
        }
    }

    pub(super) fn on_release_reply(&mut self, now: Moment, id: ActionId, result: Result<Released, BackendError>) {
        let Some(mut pending) = self.releases.answered(id) else { return };
        // The turn held one of the two leases when it ended, and the other release may be the one that found it.
        let is_one_of_two = pending.of == Of::OneOfTwo;
        let outcome = result.clone().map(|released| if is_one_of_two { Released::Released } else { released });
        self.report_end(&mut pending, &outcome);
        let turn = pending.turn.take();
        self.outbox.extend(turn.map(|turn| Output::Ended { turn, result: outcome }));
        match result {
            Ok(_) => {
                self.failing_since = None;
                self.last_asked = self.last_asked.filter(|owner| *owner != pending.request.owner);
            }
            Err(error) if self.has_session() || error.kind().is_transient() && now < pending.over_at => {
                self.release_again(now, pending, error);
            }
            Err(_) => self.report_given_up(&pending),
        }
    }

    /// A release was not answered. It is tried again, sooner if there are waiters. A waiter that does not wait is rejected.
    fn release_again(&mut self, now: Moment, mut pending: Box<PendingRelease>, error: BackendError) {
        let pause = if self.nobody_waits() { pace::unattended } else { pace::retry };
        let again_at = now + self.dice.jittered(pause(pending.tries));
        let is_late = pending.over_at <= now;
        pending.progress = Progress::Due(if is_late { again_at } else { again_at.min(pending.over_at) });
        pending.tries = pending.tries.saturating_add(1);
        pending.last_error = Some(error.clone());
        self.releases.push(pending);
        self.outbox.extend(is_late.then_some(Output::EndSession));
        self.fail_held_back(now, &error);
    }

    /// Ends all attempts that are like this, leaving nothing of them at the store.
    pub(super) fn give_up_all(&mut self, now: Moment, are_like_this: fn(&Attempt) -> bool) {
        while let Some(attempt) = self.attempts.take(are_like_this) {
            self.leave_queue(now, &attempt);
        }
    }

    /// Has the store release what it may keep for an attempt.
    pub(super) fn leave_queue(&mut self, now: Moment, attempt: &Attempt) {
        if !attempt.is_unknown_to_store() {
            self.release_attempt(now, attempt);
        }
    }

    /// Gives up the attempts whose waiters have left, or never come to the front with these terms. A claim that is in flight is
    /// waited for.
    pub(super) fn give_up_unwanted(&mut self, now: Moment) {
        let is_unwanted = |attempt: &&Attempt| {
            attempt.is_for_waiter() && attempt.progress.due().is_some() && self.waiter_of(attempt).is_none()
        };
        let owners: Vec<_> = self.attempts.iter().filter(is_unwanted).map(|attempt| attempt.owner).collect();
        for owner in owners {
            self.take_attempt(owner).into_iter().for_each(|attempt| self.leave_queue(now, &attempt));
        }
    }

    /// When to give up an attempt whose claim is in flight and that nobody here wants: its answer may be long in coming. An attempt whose
    /// owner holds already ends with the hold.
    pub(super) fn abandoned_until(&self, attempt: &Attempt) -> Option<Moment> {
        let (_, asked_at) = attempt.progress.in_flight().filter(|_| attempt.is_for_waiter())?;
        let is_abandoned = self.waiter_of(attempt).is_none() && self.lease_of(attempt.owner).is_none();
        is_abandoned.then(|| asked_at + ABANDONED_CLAIM_FOR)
    }

    /// Gives up the attempts that nobody has wanted for long enough. Their releases may overtake the claims. Returns whether there were any.
    pub(super) fn give_up_abandoned(&mut self, now: Moment) -> bool {
        let is_over = |attempt: &&Attempt| self.abandoned_until(attempt).is_some_and(|end| end <= now);
        let owners: Vec<_> = self.attempts.iter().filter(is_over).map(|attempt| attempt.owner).collect();
        for owner in &owners {
            let Some(mut attempt) = self.take_attempt(*owner) else { continue };
            self.release_attempt(now, &attempt);
            (attempt.place, attempt.certainty) = (Place::Outside, Certainty::Answered);
            attempt.purpose = Purpose::Nothing(attempt.usage());
            self.attempts.push(attempt);
        }
        !owners.is_empty()
    }

    /// The answer to a claim that a release may have overtaken. What the store keeps of it, if it came after all, is released once
    /// more, unless that is in flight or more would be owed than may be.
    pub(super) fn on_late_answer(&mut self, now: Moment, mut attempt: Attempt, result: &Result<Answer, BackendError>) {
        let usage = attempt.usage();
        let may_owe = self.releases.count(usage) < self.owed_most(usage);
        if !may_owe || self.releases.has(attempt.owner) {
            return;
        }
        attempt.progress = Progress::Due(now);
        match result {
            Ok(Answer::Granted { .. } | Answer::Queued { .. }) => attempt.place = Place::Queued,
            Err(error) if error.effect() == Effect::Unknown => attempt.certainty = Certainty::Unknown,
            Ok(Answer::Busy { .. }) | Err(_) => {}
        }
        self.leave_queue(now, &attempt);
    }
}
