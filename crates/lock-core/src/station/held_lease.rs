//! A lease that is held here, and the turns under it.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::{Attempt, Grant, LeaseUse, validity};
use super::io::TurnId;
use super::turns::{Turn, Turns};
use crate::policy::WANTED_FRESH_FOR;
use crate::{
    BackendError, Certainty, Evidence, FencingToken, Hold, Holder, Lease, Limit, LossReason, Mode, Moment, Note,
};

/// A renewal is due at this part of the validity.
const RENEWED_PART: u32 = 3;

/// It is late after this part more, when less than half is left.
const LATE_PART: u32 = 6;

/// A renewal that came late.
pub(super) struct Late {
    pub(super) by: Duration,
    /// How much longer its turns would have lasted without it.
    pub(super) remaining: Duration,
}

/// A lease that is held here. It is given up with its last turn.
#[derive(Debug)]
pub(super) struct HeldLease {
    pub(super) lease: Arc<Lease>,
    /// With which limit it was asked for, if not with that of the lease. Only the limit, because there may be many leases.
    pub(super) asked: Option<Limit>,
    /// End of the lease as this client may rely on it.
    pub(super) until: Moment,
    /// When the next renewal is due.
    renewal_due: Moment,
    /// Until when at least half of the last grant or renewal is left.
    half_left_until: Moment,
    /// Whether a claim of this owner went unanswered and so may still arrive.
    pub(super) certainty: Certainty,
    /// How many turns the lease has had before the present ones.
    pub(super) passes: u32,
    pub(super) last_error: Option<BackendError>,
    /// Whether others wait for the lock, as the store last said.
    pub(super) wanted: bool,
    /// It said so later than this: when the request was handed out, or when the event came.
    pub(super) wanted_as_of: Moment,
    /// Since when a renewal is asked for whose answer refreshes that, if one is.
    pub(super) refresh_asked_at: Option<Moment>,
    pub(super) usage: LeaseUse,
    /// What its end tells the store while it is valid. A lease that was adopted may have been adopted twice, if the store has
    /// forgotten the first time.
    pub(super) evidence: Evidence,
    pub(super) turns: Turns,
    /// Until when the store is to keep the lock, however the present turn ends.
    kept_until: Option<Moment>,
}

impl HeldLease {
    /// A lease that an attempt was granted, without turns.
    pub(super) fn new(now: Moment, grant: Grant, attempt: &Attempt) -> Self {
        let until = grant.until();
        let Grant { lease, counted_from: wanted_as_of, valid_for, wanted } = grant;
        Self {
            lease: Arc::new(lease),
            asked: None,
            until,
            // A lease that was handed over may be due at once, which is not late yet.
            renewal_due: (wanted_as_of + valid_for / RENEWED_PART).max(now),
            half_left_until: until - valid_for / 2,
            certainty: attempt.certainty,
            passes: 0,
            last_error: None,
            wanted,
            wanted_as_of,
            refresh_asked_at: None,
            usage: attempt.usage(),
            evidence: if attempt.adopts() { Evidence::Nothing } else { Evidence::ValidHold },
            turns: Turns::default(),
            kept_until: None,
        }
    }

    /// However the present turn ends, the lock is kept until then.
    pub(super) fn keep_until(&mut self, end: Moment) {
        self.kept_until = Some(end);
    }

    /// For how long the lock is still to be kept. For one end of a turn.
    pub(super) fn take_keep(&mut self, now: Moment) -> Option<Duration> {
        self.kept_until.take().map(|end| end.since(now))
    }

    pub(super) fn is_shared(&self) -> bool {
        self.lease.terms.mode == Mode::Shared
    }

    /// The store said whether others wait. The latest answer counts.
    pub(super) fn update_wanted(&mut self, at: Moment, wanted: bool) {
        if self.wanted_as_of <= at {
            (self.wanted_as_of, self.wanted) = (at, wanted);
        }
        self.refresh_asked_at.take_if(|asked_at| *asked_at <= at);
    }

    /// Whether others wait, for a reader that has waited since then; unknown if the store's last answer is too old.
    pub(super) fn wanted_for(&self, now: Moment, since: Moment) -> Option<bool> {
        (since <= self.wanted_as_of || now < self.wanted_as_of + WANTED_FRESH_FOR).then_some(self.wanted)
    }

    /// A turn begins with this token; `max_hold` ends it at `hold_until`.
    pub(super) fn begin(
        &mut self,
        now: Moment,
        id: TurnId,
        token: FencingToken,
        note: Note,
        hold_until: Option<Moment>,
    ) -> Arc<Hold> {
        let hold = Arc::new(Hold::new(Arc::clone(&self.lease), token, self.until, hold_until));
        assert!(now < hold.valid_until(), "a turn begins only while it is valid");
        self.turns.add(id, Turn { hold: Arc::clone(&hold), note });
        hold
    }

    /// The end of the first turn that ends.
    pub(super) fn turns_until(&self) -> Moment {
        self.turns.first_end().map_or(self.until, |end| end.min(self.until))
    }

    /// Whether enough of the lease is left for another local turn. A lease that was handed over lasts for a place at first,
    /// which may be less than half of the ttl.
    pub(super) fn has_half_left(&self, now: Moment) -> bool {
        now <= self.half_left_until
    }

    /// How late a renewal is that comes now, if it is late.
    pub(super) fn lateness(&self, now: Moment, valid_for: Duration) -> Option<Late> {
        let late = Late { by: now.since(self.renewal_due), remaining: self.turns_until().since(now) };
        (late.by > valid_for / LATE_PART).then_some(late)
    }

    /// Moves the end of the lease. Returns the turns whose guards have reported by a later clock that it is over.
    pub(super) fn extend(&mut self, asked_at: Moment, valid_for: Duration) -> Vec<TurnId> {
        let until = validity(asked_at, valid_for);
        self.renewal_due = self.renewal_due.max(asked_at + valid_for / RENEWED_PART);
        if until <= self.until {
            return Vec::new();
        }
        (self.until, self.half_left_until) = (until, until - valid_for / 2);
        self.turns.iter().filter(|(_, turn)| !turn.hold.extend(until)).map(|(id, _)| id).collect()
    }

    pub(super) fn has(&self, id: TurnId) -> bool {
        self.turns.has(id)
    }

    pub(super) fn take(&mut self, id: TurnId) -> Option<Turn> {
        self.turns.take(id)
    }

    pub(super) fn take_first(&mut self) -> Option<(TurnId, Turn)> {
        let (id, _) = self.turns.first()?;
        Some((id, self.take(id)?))
    }

    /// The turns whose time is over, and why.
    pub(super) fn ended(&self, now: Moment) -> Vec<(TurnId, LossReason)> {
        if now < self.until {
            return self.turns.held_long_enough(now).map(|id| (id, LossReason::MaxHold)).collect();
        }
        let reason = |turn: &Turn| match turn.hold.ended(now) {
            None | Some(LossReason::Expired(_)) => LossReason::Expired(self.last_error.clone()),
            Some(
                reason @ (LossReason::Revoked { .. } | LossReason::NotHeld | LossReason::MaxHold | LossReason::Closed),
            ) => reason,
        };
        self.turns.iter().map(|(id, turn)| (id, reason(turn))).collect()
    }

    /// This lease as waiters see it.
    pub(super) fn as_holder(&self) -> Option<Holder> {
        let note = self.turns.first()?.1.note.clone();
        Some(Holder::Leasehold { tokens: self.lease.tokens, note })
    }
}
