//! Releasing: each release is sent until it is answered, or until the lease is over anyway.

use std::time::Duration;

use super::Station;
use super::adoption::Adoption;
use super::io::{Action, ActionId, Output, Request, TurnId};
use super::pending::{Of, PendingRelease};
use super::progress::Progress;
use super::quest::{Place, Quest};
use super::tenure::Tenure;
use crate::policy::{QUESTS_MAX, pace};
use crate::{BackendError, Evidence, Mode, Moment, NameKind, ReleaseRequest, Released};

impl Station {
    /// Whether the next claim would be a new owner's, and a release has to be answered first.
    pub(super) fn is_held_back(&self) -> bool {
        let new_owner = match (self.common(), self.quests.first()) {
            _ if self.kind == NameKind::Semaphore => true,
            (Some(tenure), _) if !tenure.is_shared() => false,
            (_, None) => !self.closed,
            (_, Some(quest)) => return self.has_to_wait(quest),
        };
        new_owner && self.is_release_due(self.quests.len(), self.wanted())
    }

    /// Whether a quest has to wait before it asks: for a release, or for a waiter that came earlier.
    pub(super) fn has_to_wait(&self, quest: &Quest) -> bool {
        let owes = || self.is_release_due(self.quests.len().saturating_sub(1), Some(quest.terms.mode));
        let waiter = || quest.turn.and_then(|turn| self.line.get(turn));
        let overtakes = || quest.place == Place::Outside && waiter().is_some_and(|waiter| self.would_overtake(waiter));
        quest.is_unknown_to_store() && owes() || overtakes()
    }

    /// Whether a release has to be answered before another claim, of this mode, goes out beside so many other quests.
    pub(super) fn is_release_due(&self, others: usize, mode: Option<Mode>) -> bool {
        let pending = &self.pending_releases;
        !pending.0.is_empty() && pending.come_before_claims(&self.policy, self.owed_most(others), mode)
    }

    /// The mode that the first in line wants.
    fn wanted(&self) -> Option<Mode> {
        self.line.terms().map(|terms| terms.mode)
    }

    /// With this many pending releases, nothing new is asked beside so many other quests, each of which may end in one. So
    /// may the leases of a lock, and what is to replace them.
    pub(super) fn owed_most(&self, others: usize) -> usize {
        let owed_max = self.policy.owed_max;
        if self.kind == NameKind::Semaphore {
            return owed_max.saturating_add(QUESTS_MAX - 1) - others.min(QUESTS_MAX - 1);
        }
        let leases = |tenure: &Tenure| match (tenure.adopted, tenure.replacement.is_some()) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        };
        owed_max.saturating_sub(self.tenures.iter().map(leases).sum::<usize>() + others)
    }

    /// Whether a claim to adopt a lease may go out, which may end in a release.
    pub(super) fn may_adopt(&self, adoption: &Adoption) -> bool {
        let asked = self.adoptions.iter().filter(|other| other.is_known_to_store()).count();
        adoption.is_known_to_store() || asked + self.pending_releases.of_adopted() < QUESTS_MAX
    }

    /// Whether a lease may be replaced, which may end in two releases.
    pub(super) fn may_replace(&self, tenure: &Tenure) -> bool {
        if tenure.adopted {
            return self.pending_releases.of_adopted() < QUESTS_MAX;
        }
        let most = self.owed_most(self.quests.len());
        let owed = self.pending_releases.0.len();
        if self.kind == NameKind::Semaphore { owed + 2 <= most } else { owed <= most }
    }

    /// Repeats the release that holds claims back at once, unless it is under way.
    pub(super) fn hasten_release(&mut self, now: Moment) {
        let most = self.owed_most(self.quests.len());
        let mode = self.wanted();
        self.pending_releases.hasten_before_claims(now, &self.policy, most, mode);
    }

    /// Has the store release what it may keep for a quest: a place, a grant, or a claim that may still be under way.
    pub(super) fn part(&mut self, now: Moment, quest: &Quest) {
        let (name, owner, terms, certainty) = (self.name.clone(), quest.owner, quest.terms, quest.certainty());
        let evidence = Evidence::Nothing;
        self.release(now, ReleaseRequest { name, owner, terms, certainty, keep: None, evidence }, Of::Claim, None);
    }

    /// Has the store release what an owner has there; `turn` gets the outcome of the first try.
    pub(super) fn release(&mut self, now: Moment, request: ReleaseRequest, of: Of, turn: Option<TurnId>) {
        let ttl = request.terms.ttl;
        // A request that is under way may re-arm the ttl once more before the release arrives.
        let over_at = now + self.policy.within(ttl) + ttl.get() + crate::drift(ttl.get());
        let (progress, kept_until) = (Progress::Due(now), request.keep.map(|keep| now + keep));
        let pending =
            PendingRelease { request, of, turn, progress, tries: 0, over_at, kept_until, trouble: None, stalled: None };
        self.send(now, Box::new(pending));
    }

    fn send(&mut self, now: Moment, mut pending: Box<PendingRelease>) {
        pending.request.keep = pending.kept_until.map(|end| end.since(now)).filter(|left| !left.is_zero());
        if pending.tries > 0 {
            pending.request.evidence = Evidence::Nothing;
        }
        pending.progress = self.run(now, Request::Release(pending.request.clone()), pending.request.terms);
        self.pending_releases.push(pending);
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
        for (pending, id, at) in self.pending_releases.unanswered() {
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
            stalled.push(Action { id, request: Request::Release(request), within });
        }
        (stalled, next)
    }

    pub(super) fn repeat_releases(&mut self, now: Moment) {
        while let Some(pending) = self.pending_releases.take_due(now) {
            if now < pending.over_at {
                self.send(now, pending);
            }
        }
    }

    pub(super) fn on_release_reply(&mut self, now: Moment, id: ActionId, result: Result<Released, BackendError>) {
        let Some(mut pending) = self.pending_releases.answered(id) else { return };
        if let Some(turn) = pending.turn.take() {
            // The turn held one of the two leases when it ended, and the other release may be the one that found it.
            let is_one_of_two = pending.of.is_one_of_two();
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
        let pause = if self.line.is_empty() { pace::unattended } else { pace::retry };
        let again_at = now + self.dice.jittered(pause(pending.tries));
        pending.progress = Progress::Due(again_at.min(pending.over_at));
        pending.tries = pending.tries.saturating_add(1);
        pending.trouble = Some(error.clone());
        self.pending_releases.push(pending);
        if (self.common().is_none() || self.kind == NameKind::Semaphore) && self.is_held_back() {
            self.fail_impatient(now, None, &error);
        }
    }
}
