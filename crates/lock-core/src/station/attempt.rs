//! An attempt to get a lease, and what is known of it.

use std::time::Duration;

use super::io::TurnId;
use super::progress::Progress;
use crate::{
    BackendError, Certainty, Fairness, FencingToken, Holder, Lease, LockName, LossReason, Mode, Moment, Owner, Terms,
    Width,
};

/// A station's effort to get a lease: one owner's claims, until it is granted or given up.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) owner: Owner,
    pub(super) terms: Terms,
    pub(super) purpose: Purpose,
    /// That of its latest claim.
    pub(super) fairness: Fairness,
    /// The claim that is in flight, or when the next one goes out.
    pub(super) progress: Progress,
    /// An event of the store while a claim was in flight.
    pub(super) hint: Hint,
    /// When a grant by transfer is counted from: the handing out of the latest answered request, or of the first one.
    ///
    /// A negative answer moves it even after a claim that went unanswered: at that moment the owner did not hold, so it was
    /// handed the lock later, or no longer holds it, which [`is_ahead_of`](Self::is_ahead_of) finds out.
    pub(super) counted_from: Moment,
    pub(super) place: Place,
    /// Whether an earlier claim of this owner went unanswered and so may still arrive.
    pub(super) certainty: Certainty,
    /// The highest token that this client had seen when the owner first asked, or that of the ticket if it is higher. It is not
    /// raised later: answers may overlap, and a grant to this owner may be older than tokens seen since.
    pub(super) floor: Option<FencingToken>,
    /// How many tokens the store has granted to this owner. Asked again, it answers with that grant, so the claim must
    /// be for as many: a store that keeps only the last token would count a wider range down into an earlier lease.
    pub(super) granted: Option<Width>,
    /// How many claims in a row were not granted, for the pace.
    pub(super) tries: u32,
    /// How many grants in a row were too old when they arrived.
    pub(super) stale_answers: u32,
    /// Who held the lock at the last answer.
    pub(super) holder: Option<Holder>,
    /// The highest token that had been drawn then, if the store reports it.
    pub(super) drawn: Option<FencingToken>,
    /// Why the store has not answered since.
    pub(super) last_error: Option<BackendError>,
}

/// The purpose of an attempt.
#[derive(Debug)]
pub(super) enum Purpose {
    /// For the waiter that is in front when the answer comes. The lease is passed on.
    Front,
    /// For this waiter. The lease is private to its turn.
    Waiter(TurnId),
    /// For a waiter that wants to continue with the lease of a ticket, which this owner has. The new lease is private to its turn.
    Adopt { turn: TurnId, from: Owner },
    /// For the holder under a lease, who wants other terms.
    Replace(Box<Replace>),
    /// For nobody: its owner was released while a claim was in flight. If the claim is answered after all, the owner is released
    /// once more.
    Nothing(LeaseUse),
}

/// The use of a lease here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseUse {
    /// Local waiters pass it on, or share it. A station of a lock has one such lease.
    PassedOn,
    /// It is for one turn and ends with it: permits, and leases that were adopted.
    Private,
}

/// How a lease is to be replaced.
#[derive(Debug)]
pub(super) struct Replace {
    /// The owner of the old lease.
    pub(super) old: Owner,
    usage: LeaseUse,
    /// Until when a claim that was not answered may still arrive, if there was one.
    pub(super) unanswered_until: Option<Moment>,
    /// Why the old lease is lost, if the store said meanwhile that it is not held. It counts only if the replacement is refused.
    pub(super) old_is_gone: Option<LossReason>,
}

/// An event of the store while a claim was in flight.
#[derive(Clone, Debug)]
pub(super) enum Hint {
    Nothing,
    MayBeFree,
    /// It may be older than the answer that is still to come, or newer.
    Granted(Box<Grant>),
}

impl Attempt {
    /// An attempt whose first claim goes out now.
    pub(super) fn new(owner: Owner, terms: Terms, purpose: Purpose, now: Moment) -> Self {
        Self {
            owner,
            terms,
            purpose,
            fairness: Fairness::Fair,
            progress: Progress::Due(now),
            hint: Hint::Nothing,
            counted_from: now,
            place: Place::Outside,
            certainty: Certainty::Answered,
            floor: None,
            granted: None,
            tries: 0,
            stale_answers: 0,
            holder: None,
            drawn: None,
            last_error: None,
        }
    }

    /// How the lease will be used.
    pub(super) fn usage(&self) -> LeaseUse {
        match &self.purpose {
            Purpose::Front => LeaseUse::PassedOn,
            Purpose::Waiter(_) | Purpose::Adopt { .. } => LeaseUse::Private,
            Purpose::Replace(replace) => replace.usage,
            Purpose::Nothing(usage) => *usage,
        }
    }

    /// Whether it is for a waiter.
    pub(super) fn is_for_waiter(&self) -> bool {
        !matches!(self.purpose, Purpose::Replace(_) | Purpose::Nothing(_))
    }

    /// Whether it is for a waiter that the store may put into its queue.
    pub(super) fn may_queue(&self) -> bool {
        matches!(self.purpose, Purpose::Front | Purpose::Waiter(_))
    }

    /// Whether it is for a waiter that continues with the lease of a ticket.
    pub(super) fn adopts(&self) -> bool {
        matches!(self.purpose, Purpose::Adopt { .. })
    }

    /// Whether it was given up, and its claim is still to be answered.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.purpose, Purpose::Nothing(_))
    }

    /// The waiter that alone it is for.
    pub(super) fn turn(&self) -> Option<TurnId> {
        match self.purpose {
            Purpose::Waiter(turn) | Purpose::Adopt { turn, .. } => Some(turn),
            Purpose::Front | Purpose::Replace(_) | Purpose::Nothing(_) => None,
        }
    }

    /// How it is to replace the lease of this owner, if it is for that.
    pub(super) fn replacing(&mut self, old: Owner) -> Option<&mut Replace> {
        if let Purpose::Replace(replace) = &mut self.purpose
            && replace.old == old
        {
            return Some(replace);
        }
        None
    }

    /// The owner whose lease is to end with the grant.
    pub(super) fn replaces(&self) -> Option<Owner> {
        match &self.purpose {
            Purpose::Adopt { from, .. } => Some(*from),
            Purpose::Replace(replace) => Some(replace.old),
            Purpose::Front | Purpose::Waiter(_) | Purpose::Nothing(_) => None,
        }
    }

    /// What a release has to say of this owner's claims.
    pub(super) fn certainty(&self) -> Certainty {
        match self.progress {
            Progress::InFlight(..) => Certainty::Unknown,
            Progress::Due(_) => self.certainty,
        }
    }

    /// Whether the local readers behind it may join its grant. They must not if it passed others.
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

    /// The next claim goes out now, if none is in flight.
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
            (Progress::InFlight(..), Hint::Nothing) => self.hint = Hint::MayBeFree,
            (Progress::InFlight(..), Hint::MayBeFree | Hint::Granted(_)) => {}
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

impl Replace {
    pub(super) fn new(old: Owner, usage: LeaseUse) -> Self {
        Self { old, usage, unanswered_until: None, old_is_gone: None }
    }

    /// Whether no claim but the one that was just answered can still arrive.
    pub(super) fn is_settled(&self, now: Moment) -> bool {
        self.unanswered_until.is_none_or(|until| until <= now)
    }

    /// Whether the store surely has the old lease, if that is still valid: then it was renewed after the last claim could
    /// arrive.
    pub(super) fn never_happened(&self, now: Moment, terms: Terms) -> bool {
        self.unanswered_until.is_none_or(|until| until + terms.ttl.get() <= now)
    }
}

/// Whether an attempt's owner has a place at the store.
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
    pub(super) counted_from: Moment,
    pub(super) valid_for: Duration,
    /// Whether others are known to wait for the lock.
    pub(super) wanted: bool,
}

impl Grant {
    /// The end of the validity.
    pub(super) fn until(&self) -> Moment {
        validity(self.counted_from, self.valid_for)
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
