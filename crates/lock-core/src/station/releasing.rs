//! Releasing: each release is sent until it is answered, or until the lease is over anyway.

use std::time::Duration;

use super::Station;
use super::attempt::{Attempt, LeaseUse, Place};
use super::held::HeldLease;
use super::io::{Action, ActionId, ForWhom, Output, Request, TurnId};
use super::progress::Progress;
use super::releases::{Next, Of, PendingRelease};
use crate::policy::{ATTEMPTS_MAX, pace};
use crate::{BackendError, Evidence, Moment, NameKind, Owner, ReleaseRequest, Released};

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
        let owes = || self.is_release_due(Next { usage, mode, most: self.owed_most(usage) });
        let overtakes = || attempt.place == Place::Outside && self.would_overtake(attempt);
        attempt.is_unknown_to_store() && owes() || overtakes()
    }

    /// Whether a release has to be answered before this claim goes out.
    pub(super) fn is_release_due(&self, next: Next) -> bool {
        self.releases.come_before(&self.policy, next)
    }

    /// The claim of the next waiter.
    pub(super) fn next(&self) -> Next {
        let usage = match self.kind {
            NameKind::Lock => LeaseUse::PassedOn,
            NameKind::Semaphore => LeaseUse::Private,
        };
        let mode = self.waiters.terms().map(|terms| terms.mode);
        Next { usage, mode, most: self.owed_most(usage) }
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

    /// Repeats the release that holds claims back at once, unless it is under way.
    pub(super) fn hasten_release(&mut self, now: Moment) {
        let next = self.next();
        self.releases.hasten_before(now, &self.policy, next);
    }

    /// Has the store release what it may keep for an attempt: a place, a grant, or a claim that may still be under way. The waiter that
    /// was refused last may still be there to send the release, as its process may end now.
    pub(super) fn part(&mut self, now: Moment, attempt: &Attempt) {
        let (name, owner, terms, certainty) = (self.name.clone(), attempt.owner, attempt.terms, attempt.certainty());
        let request = ReleaseRequest { name, owner, terms, certainty, keep: None, evidence: Evidence::Nothing };
        let turn = attempt.turn().or(self.last_refused);
        self.release(now, request, (Of::Claim, attempt.usage()), turn.map_or(ForWhom::Nobody, ForWhom::Turn));
    }

    /// Has the store release what an owner has there. A turn that holds gets the outcome of the first try.
    pub(super) fn release(
        &mut self,
        now: Moment,
        request: ReleaseRequest,
        (of, usage): (Of, LeaseUse),
        for_whom: ForWhom,
    ) {
        let ttl = request.terms.ttl;
        // A request that is under way may re-arm the ttl once more before the release arrives.
        let over_at = now + self.policy.within(ttl) + ttl.get() + crate::drift(ttl.get());
        let (progress, kept_until) = (Progress::Due(now), request.keep.map(|keep| now + keep));
        let turn = match for_whom {
            ForWhom::Turn(turn) if of != Of::Claim => Some(turn),
            ForWhom::Turn(_) | ForWhom::AnyWaiter | ForWhom::Nobody => None,
        };
        let (tries, trouble, stalled) = (0, None, None);
        let pending =
            PendingRelease { request, of, usage, turn, progress, tries, over_at, kept_until, trouble, stalled };
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
            if now < pending.over_at {
                self.send(now, pending, ForWhom::Nobody);
            }
        }
    }

    pub(super) fn on_release_reply(&mut self, now: Moment, id: ActionId, result: Result<Released, BackendError>) {
        let Some(mut pending) = self.releases.answered(id) else { return };
        if let Some(turn) = pending.turn.take() {
            // The turn held one of the two leases when it ended, and the other release may be the one that found it.
            let is_one_of_two = pending.of == Of::OneOfTwo;
            let result = result.clone().map(|released| if is_one_of_two { Released::Released } else { released });
            self.outbox.push(Output::Ended { turn, result });
        }
        match result {
            Ok(_) => {
                self.failing_since = None;
                self.last_asked = self.last_asked.filter(|owner| *owner != pending.request.owner);
            }
            Err(error) if error.kind().is_transient() && now < pending.over_at => {
                self.release_again(now, pending, error);
            }
            Err(_) => {}
        }
    }

    /// A release was not answered. It is tried again, sooner if there are waiters. A waiter that does not wait is rejected.
    fn release_again(&mut self, now: Moment, mut pending: Box<PendingRelease>, error: BackendError) {
        let pause = if self.nobody_waits() { pace::unattended } else { pace::retry };
        let again_at = now + self.dice.jittered(pause(pending.tries));
        pending.progress = Progress::Due(again_at.min(pending.over_at));
        pending.tries = pending.tries.saturating_add(1);
        pending.trouble = Some(error.clone());
        self.releases.push(pending);
        self.fail_held_back(now, &error);
    }
}
