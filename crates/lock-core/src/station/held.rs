//! Holding: admission, renewal, local hand-over, loss, the end of a turn.

use std::sync::Arc;
use std::time::Duration;

use super::Station;
use super::io::{Join, Output, TurnId};
use super::line::Waiter;
use super::pending::Of;
use super::state::{Asked, Grant, Held, State};
use crate::{
    Answer, BackendError, Certainty, Effect, Ended, FencingToken, Hold, Holder, Lease, LossReason, Moment, Owner,
    ReleaseRequest, Released, Renewed,
};

/// A turn is at least this long, so that it is over only once it has begun.
const SHORTEST_HOLD: Duration = Duration::from_nanos(1);

impl Station {
    /// Admits the first waiter that fits under a fresh grant, and has the lease kept.
    pub(super) fn admit_first(&mut self, now: Moment, grant: Grant, asked: Option<Asked>, certainty: Certainty) {
        let Some(waiter) = self.line.admit(grant.lease.terms) else { return };
        let until = grant.until();
        let Grant { lease, basis, valid_for } = grant;
        self.outbox.push_back(Output::Keep { lease: lease.clone(), asked_at: basis, valid_for });
        let token = lease.tokens.low();
        self.hand_out(
            now,
            Held::admitting(now, waiter, UnderLease { lease, token, until, valid_for, passes: 0, asked, certainty }),
        );
    }

    fn hand_out(&mut self, now: Moment, held: Held) {
        assert!(now < held.turn_until(), "a turn is admitted only while it is valid");
        self.floor.raise(held.hold.token());
        self.outbox.push_back(Output::Admit { turn: held.turn, hold: Arc::clone(&held.hold) });
        self.state = State::Held(held);
    }

    /// The holder is done: the lease is passed on to the next local waiter, or given up.
    pub(super) fn end_turn(&mut self, now: Moment) {
        let State::Held(held) = std::mem::replace(&mut self.state, State::Idle) else { return };
        if !self.pass_on(now, &held) {
            self.give_up(now, &held, Some(held.turn));
        }
    }

    /// Local hand-over, if the rules allow it: bounded in number, half of what was granted left, a token left, a waiter that
    /// fits.
    fn pass_on(&mut self, now: Moment, held: &Held) -> bool {
        let passes = held.passes.saturating_add(1);
        if passes > self.policy.chain || !held.has_half_left(now) {
            return false;
        }
        let Some(token) = held.lease.tokens.nth(u64::from(passes)) else { return false };
        let Some(waiter) = self.line.admit(held.lease.terms) else { return false };
        self.outbox.push_back(Output::Ended { turn: held.turn, result: Ok(Ended::Released) });
        let (lease, asked, certainty) = (held.lease.clone(), held.asked.clone(), held.certainty);
        let (until, valid_for) = (held.until, held.valid_for);
        let under = UnderLease { lease, token, until, valid_for, passes, asked, certainty };
        self.hand_out(now, Held::admitting(now, waiter, under));
        true
    }

    /// What the clock ends: the lease, or the turn by its `max_hold`. Comes before everything else that happens.
    pub(super) fn expire(&mut self, now: Moment) {
        let State::Held(held) = &self.state else { return };
        let reason = match held.hold.ended(now) {
            Some(LossReason::Expired(_)) => LossReason::Expired(held.last_error.clone()),
            Some(reason @ (LossReason::NotHeld | LossReason::MaxHold | LossReason::Closed)) => reason,
            None => return,
        };
        self.lose(now, reason);
    }

    /// The holder loses its hold: it is told first, and what may be left at the store is released.
    pub(super) fn lose(&mut self, now: Moment, reason: LossReason) {
        let held = match std::mem::replace(&mut self.state, State::Idle) {
            State::Held(held) => held,
            other @ (State::Idle | State::Asking(..) | State::Waiting(..) | State::Closed) => {
                self.state = other;
                return;
            }
        };
        held.hold.lose(reason.clone());
        self.outbox.push_back(Output::Lose { turn: held.turn, reason });
        self.give_up(now, &held, None);
    }

    /// The lease is renewed no more, and released; `turn` hears what came of that.
    fn give_up(&mut self, now: Moment, held: &Held, turn: Option<TurnId>) {
        let Lease { name, owner, terms, .. } = held.lease.clone();
        self.outbox.push_back(Output::Forget(owner));
        self.release(now, ReleaseRequest { name, owner, terms, certainty: held.certainty() }, Of::Lease, turn);
    }

    /// The store said how a lease stands.
    pub(super) fn on_renewal(
        &mut self,
        now: Moment,
        owner: Owner,
        asked_at: Moment,
        answer: Result<Renewed, BackendError>,
    ) {
        let State::Held(held) = &mut self.state else { return };
        if held.lease.owner != owner {
            return;
        }
        match answer {
            Ok(Renewed::Renewed { valid_for }) => {
                held.last_error = None;
                held.extend(&Grant { lease: held.lease.clone(), basis: asked_at, valid_for });
            }
            Ok(Renewed::NotHeld) => self.lose(now, LossReason::NotHeld),
            Ok(Renewed::Unsure) => {}
            Err(error) => held.last_error = Some(error),
        }
    }

    /// The answer to a claim that was overtaken by the transfer of the lease.
    pub(super) fn on_late_answer(&mut self, now: Moment, result: Result<Answer, BackendError>) {
        let State::Held(held) = &mut self.state else { return };
        let asked = held.asked.take();
        match (result, asked) {
            (Ok(Answer::Granted { lease, valid_for }), Some(asked)) if lease == held.lease => {
                held.extend(&Grant { lease, basis: asked.at, valid_for });
            }
            (Ok(Answer::Granted { .. }), _) => self.lose(now, LossReason::NotHeld),
            // It was answered before the transfer, or is of no account now: renewal tells how the lease stands.
            (Ok(Answer::Queued { .. } | Answer::Busy { .. }), _) => {}
            (Err(error), _) if error.effect() == Effect::Unknown => held.certainty = Certainty::Unknown,
            (Err(_), _) => {}
        }
    }
}

/// What the turns under one lease hand on to each other.
struct UnderLease {
    lease: Lease,
    token: FencingToken,
    until: Moment,
    valid_for: Duration,
    passes: u32,
    asked: Option<Asked>,
    certainty: Certainty,
}

impl Held {
    /// The waiter's turn under a lease.
    fn admitting(now: Moment, waiter: Waiter, under: UnderLease) -> Self {
        let UnderLease { lease, token, until, valid_for, passes, asked, certainty } = under;
        let Join { turn, max_hold, note, .. } = waiter.join;
        let hold_until = max_hold.map(|most| now + most.max(SHORTEST_HOLD));
        let hold = Arc::new(Hold::new(lease.clone(), token, until, hold_until));
        Self { lease, until, valid_for, turn, note, hold, passes, asked, certainty, last_error: None }
    }

    fn extend(&mut self, grant: &Grant) {
        if self.until < grant.until() {
            (self.until, self.valid_for) = (grant.until(), grant.valid_for);
        }
        self.hold.extend(self.until);
    }

    /// This hold as those who wait see it.
    pub(super) fn as_holder(&self) -> Holder {
        Holder::Leasehold { tokens: self.lease.tokens, note: self.note.clone() }
    }
}

/// What a release says to the holder that left.
pub(super) fn ended(result: &Result<Released, BackendError>) -> Result<Ended, BackendError> {
    match result {
        Ok(Released::Released) => Ok(Ended::Released),
        Ok(Released::Left | Released::NotHeld) => Ok(Ended::AlreadyLost(LossReason::NotHeld)),
        Err(error) => Err(error.clone()),
    }
}
