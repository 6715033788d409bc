//! What is known of an effort to replace a lease in one step.

use super::progress::Progress;
use crate::{FencingToken, Lease, LossReason, Moment, Owner, Terms};

/// An effort to replace the lease. It keeps the same two owners until the store has said how it ended, or the old lease is
/// over.
#[derive(Debug)]
pub(super) struct Replacement {
    /// Of the old lease.
    pub(super) replaces: Owner,
    /// Of the new lease.
    pub(super) owner: Owner,
    pub(super) terms: Terms,
    /// The claim that is under way, or when the next one goes out.
    pub(super) progress: Progress,
    /// The highest token that the client had when the first claim was handed out.
    pub(super) floor: Option<FencingToken>,
    /// How many claims went out.
    pub(super) tries: u32,
    /// Until when a claim that was not answered may still arrive, if there was one.
    pub(super) unanswered_until: Option<Moment>,
    /// Why the old lease is lost, if the store said meanwhile that it is not held. It counts only if the replacement is refused.
    pub(super) old_is_gone: Option<LossReason>,
}

impl Replacement {
    pub(super) fn new(replaces: Owner, owner: Owner, terms: Terms, now: Moment) -> Self {
        Self {
            replaces,
            owner,
            terms,
            progress: Progress::Due(now),
            floor: None,
            tries: 0,
            unanswered_until: None,
            old_is_gone: None,
        }
    }

    /// Whether the store may hold the new lease instead of the old one.
    pub(super) fn may_have_happened(&self) -> bool {
        self.progress.due().is_none() || self.unanswered_until.is_some()
    }

    /// Whether no claim but the one that was just answered can still arrive.
    pub(super) fn is_settled(&self, now: Moment) -> bool {
        self.unanswered_until.is_none_or(|until| until <= now)
    }

    /// Whether the store surely has the old lease, if that is still valid: then it was renewed after the last claim could
    /// arrive.
    pub(super) fn never_happened(&self, now: Moment) -> bool {
        self.unanswered_until.is_none_or(|until| until + self.terms.ttl.get() <= now)
    }

    /// Whether this is the lease that was asked for. Of several slots, the first ones stay.
    pub(super) fn is_granted_by(&self, lease: &Lease, old: &Lease) -> bool {
        lease.owner == self.owner
            && lease.terms.are_like(self.terms)
            && lease.has_its_slots()
            && old.slots.get().starts_with(lease.slots.get())
            && self.floor.is_none_or(|floor| lease.tokens.low() > floor)
    }
}
