//! What is known of an effort to adopt a lease.

use super::io::{ActionId, Join};
use super::progress::Progress;
use crate::{
    BackendError, Certainty, Claim, Fairness, FencingToken, Lease, LockName, Moment, Owner, Patience, Queueing, Terms,
    Ticket,
};

/// An effort to adopt the lease of a ticket. It keeps the same two owners until the store has said how it ended, or nobody wants
/// it.
#[derive(Debug)]
pub(super) struct Adoption {
    pub(super) join: Join,
    pub(super) since: Moment,
    /// Of the lease that was detached.
    replaces: Owner,
    /// Of the new lease.
    pub(super) owner: Owner,
    /// The highest token that the client had when the first claim was handed out, or that of the ticket.
    pub(super) floor: FencingToken,
    /// The claim that is under way, or when the next one goes out.
    pub(super) progress: Progress,
    /// How many claims went out.
    pub(super) tries: u32,
    /// Whether an earlier claim went unanswered and so may still arrive.
    certainty: Certainty,
    /// Why the last claim failed.
    pub(super) trouble: Option<BackendError>,
}

impl Adoption {
    pub(super) fn new(now: Moment, join: Join, owner: Owner, ticket: &Ticket) -> Self {
        let (replaces, floor, progress) = (ticket.owner, ticket.fencing_token(), Progress::Due(now));
        let (tries, certainty, trouble) = (0, Certainty::Answered, None);
        Self { join, since: now, replaces, owner, floor, progress, tries, certainty, trouble }
    }

    pub(super) fn terms(&self) -> Terms {
        self.join.terms
    }

    pub(super) fn claim(&self, name: &LockName) -> Claim {
        Claim {
            name: name.clone(),
            owner: self.owner,
            terms: self.terms(),
            width: self.terms().mode.width(),
            floor: Some(self.floor),
            note: self.join.note.clone(),
            queueing: Queueing::Unwanted,
            replaces: Some(self.replaces),
            fairness: Fairness::Fair,
        }
    }

    pub(super) fn is_under_way_as(&self, id: ActionId) -> bool {
        self.progress.asked_at(id).is_some()
    }

    /// What a release has to say of the claims.
    pub(super) fn certainty(&self) -> Certainty {
        match self.progress {
            Progress::UnderWay(..) => Certainty::Unknown,
            Progress::Due(_) => self.certainty,
        }
    }

    /// A claim was not answered, and may have been granted.
    pub(super) fn is_unknown(&mut self) {
        self.certainty = Certainty::Unknown;
    }

    /// Whether the store may know its owner.
    pub(super) fn is_known_to_store(&self) -> bool {
        self.tries > 0
    }

    /// Whether this is the lease that was asked for.
    pub(super) fn is_granted_by(&self, lease: &Lease, name: &LockName) -> bool {
        let is_asked_for = lease.name == *name && lease.owner == self.owner && lease.terms.are_like(self.terms());
        is_asked_for && lease.has_its_slots()
    }

    /// Whether the last answer was the last one that it waits for.
    pub(super) fn is_exhausted(&self) -> bool {
        let attempts = self.join.attempts.is_some_and(|most| most.get() <= self.tries);
        attempts || self.join.patience == Patience::Never
    }

    pub(super) fn is_overdue(&self, now: Moment) -> bool {
        self.deadline().is_some_and(|end| end <= now)
    }

    pub(super) fn deadline(&self) -> Option<Moment> {
        match self.join.patience {
            Patience::Until(end) => Some(end),
            Patience::Never | Patience::Forever => None,
        }
    }
}
