//! What is known of an effort to get a lease.

use std::time::Duration;

use super::io::TurnId;
use super::progress::Progress;
use crate::{
    BackendError, Certainty, Fairness, FencingToken, Holder, Lease, LockName, Mode, Moment, Owner, Terms, Width,
};

/// A station's effort to get a lease: one owner's claims, until it is granted or given up.
#[derive(Debug)]
pub(super) struct Quest {
    pub(super) owner: Owner,
    pub(super) terms: Terms,
    /// That of its latest claim.
    pub(super) fairness: Fairness,
    /// The waiter that it is for, if each asks for itself. Otherwise it is for the first in line.
    pub(super) turn: Option<TurnId>,
    /// The claim that is under way, or when the next one goes out.
    pub(super) progress: Progress,
    /// What the store reported while a claim was under way.
    pub(super) hint: Hint,
    /// When a grant by transfer is counted from: the handing out of the latest answered request, or of the first one.
    ///
    /// A negative answer moves it even after a claim that went unanswered: at that moment the owner did not hold, so it was
    /// handed the lock later, or no longer holds it, which [`is_ahead_of`](Self::is_ahead_of) finds out.
    pub(super) basis: Moment,
    pub(super) place: Place,
    /// Whether an earlier claim of this owner went unanswered and so may still arrive.
    pub(super) certainty: Certainty,
    /// The highest token that the client had when this owner's first claim was handed out. Later ones say nothing: its own
    /// grant may be older than they are, where the answers overlap.
    pub(super) floor: Option<FencingToken>,
    /// How many tokens the store has granted to this owner. Asked again, it answers with that grant, so the claim must
    /// be for as many: a store that keeps only the last token would count a wider range down into an earlier lease.
    pub(super) granted: Option<Width>,
    /// How many negative answers in a row, for the pace.
    pub(super) tries: u32,
    /// How many grants in a row were too old when they arrived.
    pub(super) stale_answers: u32,
    /// Who held the lock at the last answer.
    pub(super) holder: Option<Holder>,
    /// The highest token that had been drawn then, if the store reports it.
    pub(super) drawn: Option<FencingToken>,
    /// Why the store has not answered since.
    pub(super) trouble: Option<BackendError>,
}

/// What the store reported while a claim was under way.
#[derive(Clone, Debug)]
pub(super) enum Hint {
    Nothing,
    MayBeFree,
    /// It may be older than the answer that is still to come, or newer.
    Granted(Box<Grant>),
}

impl Quest {
    pub(super) fn new(owner: Owner, terms: Terms, turn: Option<TurnId>, now: Moment) -> Self {
        Self {
            owner,
            terms,
            fairness: Fairness::Fair,
            turn,
            progress: Progress::Due(now),
            hint: Hint::Nothing,
            basis: now,
            place: Place::Outside,
            certainty: Certainty::Answered,
            floor: None,
            granted: None,
            tries: 0,
            stale_answers: 0,
            holder: None,
            drawn: None,
            trouble: None,
        }
    }

    /// What a release has to say of this owner's claims.
    pub(super) fn certainty(&self) -> Certainty {
        match self.progress {
            Progress::UnderWay(..) => Certainty::Unknown,
            Progress::Due(_) => self.certainty,
        }
    }

    /// Whether those who wait here behind it may have its grant as well. They must not if it passed others.
    pub(super) fn shares_its_grant(&self, wanted: bool) -> bool {
        self.fairness == Fairness::Fair || !wanted
    }

    /// Whether a transfer can only follow from a claim that is still to go out. A claim that went unanswered may take a
    /// place at any time, and be handed the lock before the next one goes out.
    pub(super) fn is_unknown_to_store(&self) -> bool {
        self.place == Place::Outside && self.certainty() == Certainty::Answered
    }

    /// Whether this is the lease that was asked for.
    pub(super) fn is_granted_by(&self, lease: &Lease, name: &LockName) -> bool {
        let is_asked_for = lease.name == *name && lease.owner == self.owner && lease.terms.are_like(self.terms);
        is_asked_for && lease.has_its_slots()
    }

    /// Whether the latest answer may have come after this lease was handed over. If the lease had ended by then, its validity
    /// must not be counted from that answer's request. The tokens tell which came first.
    pub(super) fn is_ahead_of(&self, lease: &Lease) -> bool {
        match (self.drawn, &self.holder) {
            (Some(drawn), _) => lease.tokens.low() <= drawn,
            (None, Some(Holder::Leasehold { tokens, .. })) if self.terms.mode == Mode::Exclusive => {
                lease.tokens.low() <= tokens.high()
            }
            // Where several hold, the one that was named need not be the last to come.
            (None, Some(Holder::Leasehold { .. } | Holder::Foreign)) => true,
            (None, None) => false,
        }
    }

    /// Records a negative answer.
    pub(super) fn answered(&mut self, place: Place, holder: Holder, drawn: Option<FencingToken>) {
        (self.place, self.holder, self.drawn) = (place, Some(holder), drawn);
    }

    /// The next claim goes out now, if none is under way.
    pub(super) fn ask_now(&mut self, now: Moment) {
        if let Progress::Due(at) = &mut self.progress {
            *at = now;
        }
    }

    /// The store reported that the lock may be free: the next claim goes out now, or right after a negative answer to the
    /// present one.
    pub(super) fn may_be_free(&mut self, now: Moment) {
        match (&mut self.progress, &self.hint) {
            (Progress::Due(at), _) => *at = now.min(*at),
            (Progress::UnderWay(..), Hint::Nothing) => self.hint = Hint::MayBeFree,
            (Progress::UnderWay(..), Hint::MayBeFree | Hint::Granted(_)) => {}
        }
    }

    /// The store pushed a grant that cannot be relied on until the answer arrives. The newest one counts.
    pub(super) fn was_granted(&mut self, pushed: Grant) {
        match &self.hint {
            Hint::Granted(known) if known.lease.tokens.low() >= pushed.lease.tokens.low() => {}
            Hint::Nothing | Hint::MayBeFree | Hint::Granted(_) => self.hint = Hint::Granted(Box::new(pushed)),
        }
    }
}

/// What the store may know of a quest's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing.
    Outside,
    /// It has a place in the queue.
    Queued,
}

/// A grant as this client may rely on it.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) lease: Lease,
    /// When the request was handed out that the validity counts from.
    pub(super) basis: Moment,
    pub(super) valid_for: Duration,
    /// Whether others are known to wait for the lock.
    pub(super) wanted: bool,
}

impl Grant {
    /// The end of the validity.
    pub(super) fn until(&self) -> Moment {
        validity(self.basis, self.valid_for)
    }

    /// Whether so little is left that the owner should ask again before anybody relies on it.
    pub(super) fn is_stale(&self, now: Moment) -> bool {
        self.until().since(now) <= self.valid_for / 3
    }
}

/// The end of a validity: counted from asking, less drift.
pub(super) fn validity(asked_at: Moment, valid_for: Duration) -> Moment {
    asked_at + valid_for.saturating_sub(crate::drift(valid_for))
}
