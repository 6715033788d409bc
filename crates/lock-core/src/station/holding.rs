//! Holding: admission, renewal, local hand-over, loss, the end of a turn.

use std::sync::Arc;
use std::time::Duration;

use super::Station;
use super::attempt::{Attempt, Grant, LeaseUse};
use super::held_lease::HeldLease;
use super::io::{ForWhom, Leaving, Output, TurnId};
use super::observed::ReportedHold;
use super::releases::Of;
use super::turns::Turn;
use super::waiter::Waiter;
use crate::{
    Admission, Capabilities, Certainty, Copies, Evidence, FencingToken, Keep, Lease, LossReason, Mode, Moment, Owner,
    ReleaseRequest, Released, RequestOrder, Terms, Waiting,
};

/// The shortest turn, so that none ends before it has begun.
const SHORTEST_HOLD: Duration = Duration::from_nanos(1);

impl Station {
    /// Admits the waiter that an attempt is for under a fresh grant, and has the lease renewed.
    pub(super) fn admit_first(&mut self, now: Moment, grant: Grant, attempt: &Attempt) {
        let waiter = match attempt.turn() {
            Some(turn) => self.take_waiter(turn),
            None => self.waiters.admit(grant.lease.terms),
        };
        let Some(waiter) = waiter else { return };
        let (token, others_join) = (grant.lease.tokens.low(), attempt.shares_its_grant(grant.wanted));
        let mut held = self.start_renewal(now, grant, attempt);
        held.asked = attempt.terms.mode.limit();
        self.raise_floor(&held.lease, token);
        self.admit(now, &mut held, waiter, token);
        if held.is_shared() && held.usage == LeaseUse::PassedOn && others_join {
            self.join_all(now, &mut held);
        }
        self.leases.push(held);
    }

    /// Has the keeper renew the lease of a fresh grant.
    pub(super) fn start_renewal(&mut self, now: Moment, grant: Grant, attempt: &Attempt) -> Box<HeldLease> {
        let admission = Admission { at: now, asked_at: grant.counted_from, valid_for: grant.valid_for };
        let held = Box::new(HeldLease::new(now, grant, attempt));
        self.outbox.push(Output::StartRenewal { lease: Arc::clone(&held.lease), admission });
        held
    }

    /// Gives a waiter its turn under a lease.
    pub(super) fn admit(&mut self, now: Moment, held: &mut HeldLease, waiter: Waiter, token: FencingToken) {
        let (turn, max_hold, note) = (waiter.join.turn, waiter.join.max_hold, waiter.join.note.clone());
        let hold_until = max_hold.map(|most| now + most.max(SHORTEST_HOLD));
        let hold = held.begin(now, turn, token, note, hold_until);
        self.outbox.push(Output::Admit { turn, hold });
        self.report_acquired(&waiter, token);
        if held.lease.terms.mode == Mode::Exclusive {
            self.found_taken(now);
        }
    }

    /// A turn under this lease begins with this token.
    pub(super) fn raise_floor(&mut self, lease: &Lease, token: FencingToken) {
        match lease.terms.mode {
            Mode::Exclusive => self.floor.raise(token),
            // The answers to several claims may overtake each other. Beside a reader, one may be for an adopted lease.
            Mode::Shared | Mode::Permits { .. } => self.floor.raise_to(lease.tokens.high()),
        }
    }

    /// The holder is done: the lease is passed on to the next local waiter, or given up after its last turn.
    pub(super) fn end_turn(&mut self, now: Moment, leaving: Leaving) {
        let turn = leaving.turn;
        let Some(mut held) = self.leases.take(|held| held.has(turn)) else { return };
        let owner = held.lease.owner;
        let replacement = self.replacement_of(owner);
        let is_exclusive = held.lease.terms.mode == Mode::Exclusive;
        // The store may hold a shared lease.
        let may_be_shared = replacement.is_some_and(|new| new.terms.mode == Mode::Shared);
        let may_be_replaced = replacement.is_some_and(|new| new.certainty() == Certainty::Unknown);
        let at_least = held.take_keep(now);
        let may_keep = is_exclusive && !may_be_shared;
        let keep = leaving.keep.map(Keep::get).or(at_least).filter(|keep| may_keep && !keep.is_zero());
        let ended = held.take(turn).and_then(|ended| self.end_hold(turn, &ended));
        if !held.turns.is_empty() {
            self.passed_on(turn, ended);
            self.leases.push(held);
        } else if !is_exclusive || held.usage == LeaseUse::Private || keep.is_some() || may_be_replaced {
            self.give_up(now, *held, Some((turn, ended)), keep);
        } else {
            self.take_replacement_of(owner);
            self.pass_on(now, held, (turn, ended));
        }
    }

    /// The user is done with a turn. A hold that it had to stop using early was lost, although it is released now.
    fn end_hold(&mut self, id: TurnId, turn: &Turn) -> Option<ReportedHold> {
        turn.hold.give_up();
        if turn.hold.has_stepped_down() {
            self.report_lost(id, LossReason::Expired(None));
        }
        self.take_reported(id)
    }

    /// A turn has ended, and its lease has another holder.
    pub(super) fn passed_on(&mut self, turn: TurnId, ended: Option<ReportedHold>) {
        self.outbox.push(Output::Ended { turn, result: Ok(Released::Released) });
        ended.into_iter().for_each(|ended| self.report_released(ended));
    }

    /// From this moment on, the lock of this turn is kept for so long, however the turn ends: also when it is dropped or lost, or the
    /// client is closed. The last call counts, and so does a [`Leaving::keep`]. Only an exclusive turn has an effect.
    pub fn keep_at_least(&mut self, now: Moment, turn: TurnId, keep: Keep) {
        let held = self.leases.iter_mut().find(|held| held.has(turn) && held.lease.terms.mode == Mode::Exclusive);
        held.into_iter().for_each(|held| held.keep_until(now + keep.get()));
    }

    /// Local hand-over, if the rules allow it: bounded in number, half of what was granted left, a token left, a next waiter
    /// that fits.
    fn pass_on(&mut self, now: Moment, mut held: Box<HeldLease>, (turn, ended): (TurnId, Option<ReportedHold>)) {
        held.passes = held.passes.saturating_add(1);
        let may_pass = held.passes <= self.policy.chain && held.has_half_left(now);
        let token = held.lease.tokens.nth(u64::from(held.passes)).filter(|_| may_pass);
        match token.and_then(|token| Some((token, self.waiters.admit(held.lease.terms)?))) {
            Some((token, waiter)) => {
                self.passed_on(turn, ended);
                self.raise_floor(&held.lease, token);
                self.admit(now, &mut held, waiter, token);
                self.leases.push(held);
            }
            None => self.give_up(now, *held, Some((turn, ended)), None),
        }
    }

    /// Ends what is over by now: the lease, or a turn by its `max_hold`. Comes before everything else that happens.
    pub(super) fn expire(&mut self, now: Moment) {
        let ended: Vec<_> = self.leases.iter().flat_map(|held| held.ended(now)).collect();
        for (turn, reason) in ended {
            self.lose(now, turn, reason);
        }
    }

    /// All holders lose their hold.
    pub(super) fn lose_all(&mut self, now: Moment, reason: &LossReason) {
        while let Some(owner) = self.leases.first().map(|held| held.lease.owner) {
            self.lose_lease(now, owner, reason);
        }
    }

    /// The store has granted this lease, so it has none that excludes it. What is held under one here is lost.
    pub(super) fn lose_excluded(&mut self, now: Moment, granted: &Lease) {
        let is_older = |held: &Lease| held.tokens.high() < granted.tokens.low();
        let is_excluded = |held: &Lease| match (granted.terms.mode, held.terms.mode) {
            (Mode::Exclusive, _) => true,
            (_, Mode::Exclusive) => is_older(held),
            _ => false,
        };
        let owners: Vec<_> =
            self.leases.iter().filter(|held| is_excluded(&held.lease)).map(|held| held.lease.owner).collect();
        owners.into_iter().for_each(|owner| self.lose_lease(now, owner, &LossReason::NotHeld));
    }

    /// All holders under this owner's lease lose their hold.
    pub(super) fn lose_lease(&mut self, now: Moment, owner: Owner, reason: &LossReason) {
        while let Some(id) = self.held_of(owner).and_then(|held| Some(held.turns.first()?.0)) {
            self.lose(now, id, reason.clone());
        }
    }

    /// A holder loses its hold: it is notified first. What may be left at the store is released with the last turn, except what
    /// may still keep others out for it.
    pub(super) fn lose(&mut self, now: Moment, id: TurnId, reason: LossReason) {
        let Some(mut held) = self.leases.take(|held| held.has(id)) else { return };
        let is_denied = matches!(reason, LossReason::NotHeld | LossReason::Revoked { .. });
        if let Some(turn) = held.take(id) {
            turn.hold.lose(reason.clone());
            self.outbox.push(Output::Lose { turn: id, reason: reason.clone() });
            self.report_lost(id, reason);
        }
        if !held.turns.is_empty() {
            self.leases.push(held);
        } else if is_denied && self.policy.store.copies == Copies::Several {
            self.let_expire(now, *held);
        } else {
            let keep = held.take_keep(now).filter(|keep| !keep.is_zero());
            self.give_up(now, *held, None, keep);
        }
    }

    /// Stops renewing the lease, and releases nothing: what is left of it keeps others out while the holder's work ends.
    fn let_expire(&mut self, now: Moment, held: HeldLease) {
        let owner = held.lease.owner;
        self.outbox.push(Output::StopRenewal(owner));
        // A claim that the hand-over overtook ends with the lease.
        self.take_attempt(owner);
        self.take_replacement_of(owner);
        self.others_may_be_served(now);
    }

    /// Stops renewing the lease, and releases it; the turn that has ended gets the outcome.
    fn give_up(
        &mut self,
        now: Moment,
        held: HeldLease,
        ended: Option<(TurnId, Option<ReportedHold>)>,
        keep: Option<Duration>,
    ) {
        let (turn, ended) = ended.unzip();
        let ended = ended.flatten();
        let Lease { name, owner, terms, .. } = Arc::unwrap_or_clone(held.lease);
        // Claims with the same limit need not wait for this.
        let terms = Terms { mode: held.asked.map_or(terms.mode, |limit| terms.mode.under(limit)), ..terms };
        self.outbox.push(Output::StopRenewal(owner));
        // A claim that the hand-over overtook ends with the lease.
        let certainty = self.take_attempt(owner).map_or(held.certainty, |attempt| attempt.certainty());
        let is_valid = turn.is_some() && now < held.until;
        let evidence = if is_valid { held.evidence } else { Evidence::Nothing };
        let request = ReleaseRequest { name, owner, terms, certainty, keep, evidence };
        self.others_may_be_served(now);
        let (usage, for_whom) = (held.usage, turn.map_or(ForWhom::Nobody, ForWhom::Turn));
        let replacement = self.take_replacement_of(owner);
        let Some(new) = replacement.filter(|new| new.certainty() == Certainty::Unknown) else {
            return self.release(now, request, (Of::Lease, usage), for_whom, ended);
        };
        let request = ReleaseRequest { certainty: Certainty::Unknown, evidence: Evidence::Nothing, ..request };
        self.release(now, request.clone(), (Of::OneOfTwo, usage), ForWhom::Nobody, None);
        let (owner, terms) = (new.owner, new.terms);
        self.release(now, ReleaseRequest { owner, terms, ..request }, (Of::OneOfTwo, usage), for_whom, ended);
    }

    /// A lease ends that was held here. The waiters here have claims at the store, which may serve them now. Where it cannot notify
    /// them, they would learn of it late, so they ask: the first one, or all where claims may overtake each other.
    fn others_may_be_served(&mut self, now: Moment) {
        match self.policy.store {
            Capabilities { waiting: Waiting::QueueWithPush, .. } => {}
            Capabilities { ordering: RequestOrder::InOrder, .. } => self.next_may_be_served(now),
            Capabilities { ordering: RequestOrder::Unordered, .. } => self.may_all_be_free(now),
        }
    }

    /// The lock may be free, for all waiters that the store knows.
    pub(super) fn may_all_be_free(&mut self, now: Moment) {
        let waiting = self.attempts.iter_mut().filter(|attempt| attempt.may_queue());
        waiting.for_each(|attempt| attempt.may_be_free(now));
    }

    /// One that waited here was served, and the next one may have been.
    pub(super) fn next_may_be_served(&mut self, now: Moment) {
        let Capabilities { waiting, ordering, .. } = self.policy.store;
        let waits = self.attempts.iter_mut().filter(|attempt| attempt.may_queue());
        if waiting != Waiting::QueueWithPush
            && ordering == RequestOrder::InOrder
            && let Some(next) = waits.min_by_key(|attempt| attempt.turn())
        {
            next.may_be_free(now);
        }
    }
}
