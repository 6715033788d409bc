//! Pending releases, and which of them hold a new claim back.

use super::attempt::LeaseUse;
use super::few::Few;
use super::io::{ActionId, TurnId};
use super::observed::ReportedHold;
use super::progress::Progress;
use crate::policy::ATTEMPTS_MAX;
use crate::{BackendError, Certainty, Mode, Moment, Owner, Policy, ReleaseRequest, RequestOrder, Waiting};

/// A release request that was not answered yet.
#[derive(Debug)]
pub(super) struct PendingRelease {
    pub(super) request: ReleaseRequest,
    pub(super) of: Of,
    /// How the lease was used here, or would have been.
    pub(super) usage: LeaseUse,
    /// The holder that waits for the outcome; nobody after the first try.
    pub(super) turn: Option<TurnId>,
    /// The turn whose end is reported to observers with the outcome.
    pub(super) ended: Option<ReportedHold>,
    pub(super) progress: Progress,
    pub(super) tries: u32,
    /// When the store has surely forgotten the owner by itself. Where entries end with a session, the session has to end then.
    pub(super) over_at: Moment,
    /// Until when the lock is kept, if it is: counted from the first try, so that no later one lengthens it.
    pub(super) kept_until: Option<Moment>,
    /// Why the last try failed.
    pub(super) last_error: Option<BackendError>,
    /// The action that was handed out a second time.
    pub(super) stalled: Option<ActionId>,
}

/// The subject of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// A lease that somebody here held.
    Lease,
    /// A lease that somebody here held, or the one that was to replace it: the store has one of them, and it is not known
    /// which.
    OneOfTwo,
    /// A claim, and whatever came of it: a place, or a lease that nobody here held.
    Claim,
}

impl PendingRelease {
    /// Whether a claim of another owner has to wait until this one is answered.
    ///
    /// Where the store has no queue, what is left of a claim that was not answered may stand in the next one's way. Where
    /// requests may overtake each other, the next claim would meet the lease that was held here; the first try of the
    /// release is waited for, and no other. A claim with another limit of the semaphore is an error at the store
    /// as long as anything is left of this one.
    fn comes_before(&self, policy: &Policy, mode: Option<Mode>) -> bool {
        let Some(mode) = mode else { return false };
        let is_other_limit = !mode.suits(self.request.terms.mode);
        let may_linger = policy.store.waiting == Waiting::Poll && self.request.certainty == Certainty::Unknown;
        let may_be_overtaken =
            policy.store.ordering == RequestOrder::Unordered && self.of != Of::Claim && self.tries == 0;
        may_linger || may_be_overtaken || is_other_limit
    }
}

/// A claim that a new owner would make.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextClaim {
    /// How the lease would be used.
    pub(super) usage: LeaseUse,
    /// `None` if it is to replace a lease: then it meets no other.
    pub(super) mode: Option<Mode>,
    /// With this many pending releases of leases used alike, the claim has to wait.
    pub(super) most: usize,
}

/// All pending releases of a station.
#[derive(Debug, Default)]
pub(super) struct PendingReleases(pub(super) Few<PendingRelease>);

impl PendingReleases {
    /// Whether a release of this owner was not answered yet.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.0.iter().any(|pending| pending.request.owner == owner)
    }

    /// How many there are of leases that were used like this.
    pub(super) fn count(&self, usage: LeaseUse) -> usize {
        self.0.iter().filter(|pending| pending.usage == usage).count()
    }

    /// Whether a release has to be answered before a new owner may make this claim.
    pub(super) fn come_before(&self, policy: &Policy, next: NextClaim) -> bool {
        self.count(next.usage) >= next.most || self.before_at(policy, next).is_some()
    }

    /// Repeats that release at once, unless it is in flight.
    pub(super) fn repeat_now(&mut self, now: Moment, policy: &Policy, next: NextClaim) {
        let first = self.before_at(policy, next).and_then(|index| self.0.iter_mut().nth(index));
        if let Some(Progress::Due(at)) = first.map(|pending| &mut pending.progress) {
            *at = now;
        }
    }

    fn before_at(&self, policy: &Policy, next: NextClaim) -> Option<usize> {
        let one = self.0.iter().position(|pending| pending.comes_before(policy, next.mode));
        // One that is in flight comes first.
        let alike = self.0.iter().enumerate().filter(|(_, pending)| pending.usage == next.usage);
        let any = || alike.min_by_key(|(_, pending)| pending.progress.due()).map(|(index, _)| index);
        if one.is_none() && self.count(next.usage) >= next.most { any() } else { one }
    }

    /// Whether there are no more of them than a station may have. Each private lease that was held adds one, or two.
    pub(super) fn are_few(&self, policy: &Policy) -> bool {
        let (private, passed_on): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|pending| pending.usage == LeaseUse::Private);
        let claims = private.iter().filter(|pending| pending.of == Of::Claim).count();
        passed_on.len() <= policy.owed_max && claims < policy.owed_max.saturating_add(ATTEMPTS_MAX)
    }

    /// Whether one has been pending for longer than its lease would last.
    pub(super) fn are_late(&self, now: Moment) -> bool {
        self.0.iter().any(|pending| pending.over_at <= now)
    }

    /// Why a release was not answered, if one was not.
    pub(super) fn last_error(&self) -> Option<&BackendError> {
        self.0.iter().find_map(|pending| pending.last_error.as_ref())
    }

    /// Takes out one of them.
    pub(super) fn take_any(&mut self) -> Option<Box<PendingRelease>> {
        self.0.take(|_| true)
    }

    pub(super) fn push(&mut self, pending: Box<PendingRelease>) {
        self.0.push(pending);
    }

    pub(super) fn answered(&mut self, id: ActionId) -> Option<Box<PendingRelease>> {
        self.0.take(|pending| pending.progress.asked_at(id).is_some())
    }

    /// Takes out one that is to be sent again by now.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Box<PendingRelease>> {
        self.0.take(|pending| pending.progress.due().is_some_and(|at| at <= now))
    }

    /// The ones that are in flight and were not handed out a second time, each with its action and when that was handed out.
    pub(super) fn unanswered(&mut self) -> impl Iterator<Item = (&mut PendingRelease, ActionId, Moment)> {
        let asked =
            |pending: &PendingRelease| pending.progress.in_flight().filter(|(id, _)| pending.stalled != Some(*id));
        self.0.iter_mut().filter_map(move |pending| asked(pending).map(|(id, at)| (pending, id, at)))
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.0.iter().filter_map(|pending| pending.progress.due()).min()
    }
}
