//! Replacing: the only turn under a lease continues under another one, in one step at the store.
//!
//! The hold stays under the old lease until the store has granted the new one. While a claim is not answered, the store
//! may have either; so it is asked again with the same two owners, a "not held" for the old one means nothing, and if the
//! hold ends, both are released.
//!
//! A lease that was detached is adopted in the same step, by a turn of any client. An adopted lease stands for itself: it is not
//! passed on, no reader joins it, and what local waiters ask of the store continues beside it, as if it were another client's.

use std::sync::Arc;

use super::Station;
use super::attempt::{Attempt, Grant, LeaseUse, Purpose, Replace};
use super::io::{Join, Output, TurnId};
use super::progress::Progress;
use super::waiter::Waiter;
use crate::{
    Ability, AcquireError, Answer, BackendError, Capabilities, Certainty, Effect, Invalid, Lease, LossReason, Mode,
    Moment, Owner, Refusal, Terms, Ticket,
};

impl Station {
    /// A holder wants other terms.
    pub(super) fn on_replace(&mut self, now: Moment, turn: TurnId, terms: Terms) {
        let Some(held) = self.leases.iter().find(|held| held.has(turn)) else { return };
        let Lease { owner, terms: old, .. } = *held.lease;
        let busy = held.turns.len() > 1 || self.replacement_of(owner).is_some();
        // Readers share a lease of any ttl.
        let terms =
            if old.mode.kind() == terms.mode.kind() { terms } else { Terms { ttl: terms.ttl.max(old.ttl), ..terms } };
        let refusal = match check(&self.policy.store, old, terms) {
            Err(error) => Refusal::Error(error),
            Ok(()) if busy => Refusal::Busy { holder: held.as_holder() },
            Ok(()) => {
                let purpose = Purpose::Replace(Box::new(Replace::new(owner, held.usage)));
                let attempt = Attempt::new(self.owners.draw(), terms, purpose, now);
                return self.attempts.push(Box::new(attempt));
            }
        };
        self.outbox.push(Output::Replaced { turn, result: Err(refusal) });
    }

    /// The attempt to replace the lease of this owner.
    pub(super) fn replacement_of(&self, owner: Owner) -> Option<&Attempt> {
        let is_it = |attempt: &&Attempt| matches!(&attempt.purpose, Purpose::Replace(replace) if replace.old == owner);
        self.attempts.iter().find(is_it)
    }

    pub(super) fn take_replacement_of(&mut self, owner: Owner) -> Option<Box<Attempt>> {
        self.attempts.take(|attempt| matches!(&attempt.purpose, Purpose::Replace(replace) if replace.old == owner))
    }

    pub(super) fn on_replacement_answer(
        &mut self,
        now: Moment,
        asked_at: Moment,
        mut attempt: Box<Attempt>,
        result: Result<Answer, BackendError>,
    ) {
        attempt.progress = Progress::Due(now);
        let terms = attempt.terms;
        let Purpose::Replace(replace) = &mut attempt.purpose else { return };
        let (is_settled, never_happened) = (replace.is_settled(now), replace.never_happened(now, terms));
        let owner = replace.old;
        let Some(old) = self.held_of(owner).map(|held| Arc::clone(&held.lease)) else { return };
        let effect = match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) if self.is_replaced_by(&attempt, &old, &lease) => {
                let grant = Grant { lease, counted_from: asked_at, valid_for, wanted };
                if self.is_outlived(&grant.lease) {
                    attempt.certainty = Certainty::Unknown;
                    self.attempts.push(attempt);
                    return self.lose_lease(now, owner, &LossReason::NotHeld);
                }
                if !grant.is_stale(now) {
                    return self.continue_under(now, grant, owner, &attempt);
                }
                Effect::Unknown
            }
            // Not what was asked for.
            Ok(Answer::Granted { .. } | Answer::Queued { .. }) => Effect::Unknown,
            Ok(Answer::Busy { holder, .. }) if is_settled => {
                return self.refuse_replacement(now, &mut attempt, Refusal::Busy { holder: Some(holder) });
            }
            Ok(Answer::Busy { .. }) => Effect::None,
            Err(error) if error.effect() == Effect::None && never_happened => {
                return self.refuse_replacement(now, &mut attempt, Refusal::Error(error.into()));
            }
            Err(error) => error.effect(),
        };
        // The store may have replaced the lease, or still may.
        if effect == Effect::Unknown {
            let may_arrive_until = now + self.policy.lasts(terms.ttl);
            attempt.certainty = Certainty::Unknown;
            attempt.replacing(owner).into_iter().for_each(|replace| {
                replace.unanswered_until = Some(may_arrive_until);
            });
        }
        self.pause(now, &mut attempt);
        self.attempts.push(attempt);
    }

    /// Whether this is the lease that is to replace the old one. Of several slots, the first ones stay.
    fn is_replaced_by(&self, attempt: &Attempt, old: &Lease, lease: &Lease) -> bool {
        attempt.is_granted_by(lease, &self.name)
            && old.slots.get().starts_with(lease.slots.get())
            && attempt.floor.is_none_or(|floor| lease.tokens.low() > floor)
    }

    fn refuse_replacement(&mut self, now: Moment, attempt: &mut Attempt, refusal: Refusal) {
        let Purpose::Replace(replace) = &mut attempt.purpose else { return };
        let Some(turn) = self.held_of(replace.old).and_then(|held| Some(held.turns.first()?.0)) else { return };
        self.outbox.push(Output::Replaced { turn, result: Err(refusal) });
        if let Some(reason) = replace.old_is_gone.take() {
            self.lose_lease(now, replace.old, &reason);
        }
    }

    /// The turn continues under the new lease.
    fn continue_under(&mut self, now: Moment, grant: Grant, owner: Owner, attempt: &Attempt) {
        let Some(mut old) = self.leases.take(|held| held.lease.owner == owner) else { return };
        let Some((id, before)) = old.take_first() else { return };
        self.outbox.push(Output::StopRenewal(owner));
        let token = grant.lease.tokens.low();
        self.lose_excluded(now, &grant.lease);
        // Nobody here waits at the store beside an exclusive lease, unless that is private to its turn.
        if old.is_shared() && old.usage == LeaseUse::PassedOn {
            self.give_up_all(now, Attempt::may_queue);
        }
        let mut held = self.start_renewal(now, grant, attempt);
        (held.passes, held.evidence) = (old.passes, old.evidence);
        let hold = held.begin(now, id, token, before.note.clone(), before.hold.hold_until);
        self.report_replaced(id, token);
        before.hold.continue_as(Arc::clone(&hold));
        self.raise_floor(&held.lease, token);
        self.outbox.push(Output::Replaced { turn: id, result: Ok(hold) });
        self.leases.push(held);
    }

    /// A waiter wants to continue with the lease of a ticket. To adopt a lease is to replace it: the claim has a fresh owner, so that it
    /// is granted once, and the client that had the lease before can do nothing to the new one.
    pub(super) fn on_adopt(&mut self, now: Moment, join: Join, ticket: &Ticket) {
        if let Err(refusal) = self.check(&join).and_then(|()| Ok(self.policy.store.check_ability(Ability::Replace)?)) {
            return self.refuse([Waiter::new(now, join)], &Refusal::Error(refusal));
        }
        let purpose = Purpose::Adopt { turn: join.turn, from: ticket.owner };
        let attempt = Attempt::new(self.owners.draw(), join.terms, purpose, now);
        self.attempts.push(Box::new(Attempt { floor: Some(ticket.fencing_token()), ..attempt }));
        let join = self.reported(join);
        self.adopters.get_or_insert_default().join(now, join);
        self.found_held(now);
    }

    /// A holder lets go of its lease, which stays as it is. Does nothing if others hold under it here.
    pub(super) fn on_detach(&mut self, id: TurnId) {
        let Some(held) = self.leases.iter().find(|held| held.has(id) && held.turns.len() == 1) else { return };
        let owner = held.lease.owner;
        if self.replacement_of(owner).is_some() {
            return;
        }
        let ended = self.leases.take(|held| held.lease.owner == owner).and_then(|mut held| held.take(id));
        // A claim that the hand-over overtook has done what it can.
        self.take_attempt(owner);
        self.outbox.extend([Output::StopRenewal(owner), Output::Detached(id)]);
        if let Some(turn) = ended {
            turn.hold.give_up();
            self.report_detached(id);
        }
    }

    /// Whether there is an attempt for each adopter.
    pub(super) fn adopters_ask(&self) -> bool {
        let asks = |waiter: &Waiter| self.attempt_for(waiter.join.turn).is_some();
        self.adopters.iter().all(|queue| queue.iter().all(asks))
    }
}

fn check(store: &Capabilities, old: Terms, new: Terms) -> Result<(), AcquireError> {
    store.check_ability(Ability::Replace)?;
    store.check_mode(new.mode)?;
    match (old.mode, new.mode) {
        (Mode::Exclusive, Mode::Exclusive | Mode::Shared) | (Mode::Shared, Mode::Exclusive) => {}
        (Mode::Permits { count: has, limit }, Mode::Permits { count, limit: other }) => {
            if limit != other {
                let problem = format!("the permits are of {limit}");
                return Err(Invalid::new("limit", other, problem, "keep the limit that they were acquired with").into());
            }
            if has < count {
                let problem = format!("{has} of {limit} are held");
                return Err(Invalid::new("number of permits", count, problem, "keep fewer of them").into());
            }
        }
        (old, new) => {
            let problem = format!("a lease of mode \"{}\" is not replaced by one of this mode", old.kind());
            return Err(Invalid::new("mode", new.kind(), problem, "release the lock, and acquire it again").into());
        }
    }
    if old.ttl <= new.ttl {
        return Ok(());
    }
    // If the answer is lost, the holder relies on the old lease, and the new one must not end before that.
    let problem = format!("it is shorter than the {} that the lock is held with", old.ttl);
    Err(Invalid::new("ttl", new.ttl, problem, "give one that is at least as long").into())
}
