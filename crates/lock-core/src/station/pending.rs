//! Pending releases: each is sent until it is answered, or until the lease is over anyway; and what they hold back.

use super::Station;
use super::io::{ActionId, Output, Request, TurnId};
use super::phase::Phase;
use super::quest::{Attempt, Quest};
use crate::policy::pace;
use crate::{BackendError, Certainty, Moment, Owner, Policy, ReleaseRequest, Released, RequestOrder, Waiting};

/// A release request that was not answered yet.
#[derive(Debug)]
pub(super) struct PendingRelease {
    pub(super) request: ReleaseRequest,
    pub(super) of: Of,
    /// The holder that waits for the outcome; nobody after the first try.
    pub(super) turn: Option<TurnId>,
    pub(super) progress: Progress,
    pub(super) tries: u32,
    /// When the store has surely forgotten the owner by itself.
    pub(super) over_at: Moment,
    /// Why the last try failed.
    pub(super) trouble: Option<BackendError>,
}

/// What a release gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// A lease that somebody here held.
    Lease,
    /// A claim, and whatever came of it: a place, or a lease that nobody here held.
    Claim,
}

impl PendingRelease {
    /// Whether a claim of another owner has to wait until this one is answered.
    ///
    /// Where the store has no queue, what is left of a claim that was not answered may stand in the next one's way. Where
    /// requests may overtake each other, the next claim would meet the lease that was held here; the first try of the
    /// release is waited for, and no other.
    fn comes_before_claims(&self, policy: &Policy) -> bool {
        let may_linger = policy.store.waiting == Waiting::Poll && self.request.certainty == Certainty::Unknown;
        let may_be_overtaken =
            policy.store.ordering == RequestOrder::Unordered && self.of == Of::Lease && self.tries == 0;
        may_linger || may_be_overtaken
    }

    /// When there is an answer at the earliest.
    fn due(&self) -> Moment {
        match self.progress {
            Progress::UnderWay(_) => Moment::ORIGIN,
            Progress::AgainAt(at) => at,
        }
    }
}

/// Whether a release is under way or waits to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    UnderWay(ActionId),
    AgainAt(Moment),
}

/// All pending releases of a station.
#[derive(Debug, Default)]
pub(super) struct PendingReleases(pub(super) Vec<PendingRelease>);

impl PendingReleases {
    pub(super) fn push(&mut self, pending: PendingRelease) {
        self.0.push(pending);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a release of this owner was not answered yet.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.0.iter().any(|pending| pending.request.owner == owner)
    }

    /// The release that has to be answered before a new owner may ask.
    pub(super) fn before_claims(&self, policy: &Policy) -> Option<&PendingRelease> {
        self.before_claims_at(policy).and_then(|index| self.0.get(index))
    }

    /// Has that release repeated at once, if it is not under way.
    pub(super) fn hasten_before_claims(&mut self, now: Moment, policy: &Policy) {
        let first = self.before_claims_at(policy).and_then(|index| self.0.get_mut(index));
        if let Some(PendingRelease { progress: Progress::AgainAt(at), .. }) = first {
            *at = now;
        }
    }

    fn before_claims_at(&self, policy: &Policy) -> Option<usize> {
        let one = self.0.iter().position(|pending| pending.comes_before_claims(policy));
        let any = || (0..self.0.len()).min_by_key(|index| self.0[*index].due());
        if one.is_none() && self.0.len() >= policy.owed_max { any() } else { one }
    }

    /// Why a release was not answered, if one was not.
    pub(super) fn trouble(&self) -> Option<&BackendError> {
        self.0.iter().find_map(|pending| pending.trouble.as_ref())
    }

    pub(super) fn answered(&mut self, id: ActionId) -> Option<PendingRelease> {
        let index = self.0.iter().position(|pending| pending.progress == Progress::UnderWay(id))?;
        Some(self.0.swap_remove(index))
    }

    /// Takes out one that is to be sent again by now.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<PendingRelease> {
        let index = self.0.iter().position(|pending| matches!(pending.progress, Progress::AgainAt(at) if at <= now))?;
        Some(self.0.swap_remove(index))
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        let due = |pending: &PendingRelease| match pending.progress {
            Progress::AgainAt(at) => Some(at),
            Progress::UnderWay(_) => None,
        };
        self.0.iter().filter_map(due).min()
    }
}

impl Station {
    /// Whether the next claim would be a new owner's, and a release has to be answered first.
    pub(super) fn is_held_back(&self) -> bool {
        let new_owner = match (&self.tenure, &self.quest) {
            (None, None) => self.phase == Phase::Open,
            (None, Some(Quest::Waiting(attempt, _))) => attempt.is_unknown_to_store(),
            (None, Some(Quest::Asking(..))) | (Some(_), _) => false,
        };
        new_owner && self.pending_releases.before_claims(&self.policy).is_some()
    }

    /// Has the store release what it may keep for an attempt: a place, a grant, or a claim that may still be under way.
    pub(super) fn part(&mut self, now: Moment, attempt: &Attempt, certainty: Certainty) {
        let request = ReleaseRequest { name: self.name.clone(), owner: attempt.owner, terms: attempt.terms, certainty };
        self.release(now, request, Of::Claim, None);
    }

    /// Has the store release what an owner has there; `turn` hears what came of the first try.
    pub(super) fn release(&mut self, now: Moment, request: ReleaseRequest, of: Of, turn: Option<TurnId>) {
        let ttl = request.terms.ttl;
        // A request that is under way may re-arm the ttl once more before the release arrives.
        let over_at = now + self.policy.within(ttl) + ttl.get() + crate::drift(ttl.get());
        let progress = Progress::AgainAt(now);
        self.send(PendingRelease { request, of, turn, progress, tries: 0, over_at, trouble: None });
    }

    fn send(&mut self, mut pending: PendingRelease) {
        let within = self.policy.within(pending.request.terms.ttl);
        let id = self.run(Request::Release(pending.request.clone()), within);
        pending.progress = Progress::UnderWay(id);
        self.pending_releases.push(pending);
    }

    pub(super) fn repeat_releases(&mut self, now: Moment) {
        while let Some(pending) = self.pending_releases.take_due(now) {
            if now < pending.over_at {
                self.send(pending);
            }
        }
    }

    pub(super) fn on_release_reply(&mut self, now: Moment, id: ActionId, result: Result<Released, BackendError>) {
        let Some(mut pending) = self.pending_releases.answered(id) else { return };
        if let Some(turn) = pending.turn.take() {
            self.outbox.push_back(Output::Ended { turn, result: result.clone() });
        }
        match result {
            Ok(_) => self.last_asked = self.last_asked.filter(|owner| *owner != pending.request.owner),
            Err(error) if error.kind().is_transient() && now < pending.over_at => {
                self.release_again(now, pending, error);
            }
            Err(_) => {}
        }
    }

    /// A release was not answered. It is tried again, sooner where somebody waits than where nobody does, but a waiter that will
    /// not wait has its answer.
    fn release_again(&mut self, now: Moment, mut pending: PendingRelease, error: BackendError) {
        let pause = if self.line.is_empty() { pace::unattended } else { pace::retry };
        let again_at = now + self.dice.jittered(pause(pending.tries));
        pending.progress = Progress::AgainAt(again_at.min(pending.over_at));
        pending.tries = pending.tries.saturating_add(1);
        pending.trouble = Some(error.clone());
        self.pending_releases.push(pending);
        if self.is_held_back() {
            self.fail_impatient(&error);
        }
    }
}
