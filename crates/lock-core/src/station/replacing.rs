//! Replacing: the only turn under a lease goes on under another one, in one step at the store.
//!
//! The hold goes on under the old lease until the store has granted the new one. While a claim is not answered, the store
//! may have either; so it is asked again with the same two owners, a "not held" for the old one means nothing, and if the
//! hold ends, both are released.

use super::Station;
use super::io::{ActionId, Output, Request, TurnId};
use super::progress::Progress;
use super::quest::Grant;
use super::replacement::Replacement;
use super::tenure::Turn;
use crate::policy::pace;
use crate::{
    Ability, AcquireError, Answer, BackendError, Capabilities, Certainty, Claim, Effect, Invalid, LossReason, Moment,
    Queueing, Refusal, Terms, Width,
};

impl Station {
    /// A holder wants other terms.
    pub(super) fn on_replace(&mut self, now: Moment, turn: TurnId, terms: Terms) {
        let Some(tenure) = self.tenure.as_mut().filter(|tenure| tenure.has(turn)) else { return };
        let busy = tenure.turns.len() > 1 || tenure.replacement.is_some();
        let refusal = match check(&self.policy.store, tenure.lease.terms, terms) {
            Err(error) => Refusal::Error(error),
            Ok(()) if busy => Refusal::Busy { holder: tenure.as_holder() },
            Ok(()) => {
                let replacement = Replacement::new(self.owners.draw(), terms, now);
                return tenure.replacement = Some(Box::new(replacement));
            }
        };
        self.outbox.push_back(Output::Replaced { turn, result: Err(refusal) });
    }

    /// When the claim is to go out, unless something else has to be answered first: a claim of the old owner, or releases,
    /// as the end of the hold may add two.
    pub(super) fn replacement_due(&self) -> Option<Moment> {
        let free = self.quest.is_none() && self.pending_releases.0.len() + 2 <= self.policy.owed_max;
        self.tenure.as_ref()?.replacement.as_ref()?.progress.due().filter(|_| free)
    }

    /// Sends the claim if it is due.
    pub(super) fn ask_replacement(&mut self, now: Moment) {
        if self.replacement_due().is_none_or(|due| now < due) {
            return;
        }
        let Some(tenure) = &mut self.tenure else { return };
        let (Some(mut replacement), Some(turn)) = (tenure.replacement.take(), tenure.turns.first()) else { return };
        if replacement.tries == 0 {
            replacement.floor = self.floor.get();
        }
        replacement.tries = replacement.tries.saturating_add(1);
        let claim = Claim {
            name: self.name.clone(),
            owner: replacement.owner,
            terms: replacement.terms,
            width: Width::ONE,
            floor: replacement.floor,
            note: turn.note.clone(),
            queueing: Queueing::Unwanted,
            replaces: Some(tenure.lease.owner),
        };
        replacement.progress = self.run(now, Request::Acquire(claim), replacement.terms);
        self.go_on_replacing(replacement);
    }

    fn go_on_replacing(&mut self, replacement: Box<Replacement>) {
        if let Some(tenure) = &mut self.tenure {
            tenure.replacement = Some(replacement);
        }
    }

    /// The replacement that this action was for, and when it was handed out.
    pub(super) fn take_replacement(&mut self, id: ActionId) -> Option<(Moment, Box<Replacement>)> {
        let tenure = self.tenure.as_mut()?;
        let asked_at = tenure.replacement.as_ref()?.progress.asked_at(id)?;
        Some((asked_at, tenure.replacement.take()?))
    }

    pub(super) fn on_replacement_answer(
        &mut self,
        now: Moment,
        asked_at: Moment,
        mut replacement: Box<Replacement>,
        result: Result<Answer, BackendError>,
    ) {
        let effect = match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) if replacement.is_granted_by(&lease) => {
                let grant = Grant { lease, basis: asked_at, valid_for, wanted };
                if !grant.is_stale(now) {
                    return self.go_on_under(now, grant, &replacement);
                }
                Effect::Unknown
            }
            // Not what was asked for.
            Ok(Answer::Granted { .. } | Answer::Queued { .. }) => Effect::Unknown,
            Ok(Answer::Busy { holder, .. }) if replacement.is_settled(now) => {
                return self.refuse_replacement(now, &replacement, Refusal::Busy { holder: Some(holder) });
            }
            Ok(Answer::Busy { .. }) => Effect::None,
            Err(error) if error.effect() == Effect::None && replacement.unanswered_until.is_none() => {
                return self.refuse_replacement(now, &replacement, Refusal::Error(error.into()));
            }
            Err(error) => error.effect(),
        };
        // The store may have replaced the lease, or still may.
        if effect == Effect::Unknown {
            let ttl = replacement.terms.ttl.get();
            replacement.unanswered_until = Some(now + ttl + crate::drift(ttl));
        }
        let pause = self.dice.jittered(pace::retry(replacement.tries.saturating_sub(1)));
        replacement.progress = Progress::Due(now + pause);
        self.go_on_replacing(replacement);
    }

    fn refuse_replacement(&mut self, now: Moment, replacement: &Replacement, refusal: Refusal) {
        let Some(turn) = self.tenure.as_ref().and_then(|tenure| Some(tenure.turns.first()?.id)) else { return };
        self.outbox.push_back(Output::Replaced { turn, result: Err(refusal) });
        if replacement.old_is_gone {
            self.lose_all(now, &LossReason::NotHeld);
        }
    }

    /// The turn goes on under the new lease.
    fn go_on_under(&mut self, now: Moment, grant: Grant, replacement: &Replacement) {
        let Some(mut old) = self.tenure.take() else { return };
        let Some(Turn { id, hold, note }) = old.turns.pop() else { return };
        let certainty = match replacement.unanswered_until {
            Some(_) => Certainty::Unknown,
            None => Certainty::Answered,
        };
        self.outbox.push_back(Output::Forget(old.lease.owner));
        let token = grant.lease.tokens.low();
        let mut tenure = self.keep(grant, certainty);
        tenure.passes = old.passes;
        let hold = tenure.begin(now, id, token, note, hold.hold_until);
        self.floor.raise(token);
        self.outbox.push_back(Output::Replaced { turn: id, result: Ok(hold) });
        self.tenure = Some(tenure);
    }
}

fn check(store: &Capabilities, old: Terms, new: Terms) -> Result<(), AcquireError> {
    store.check_ability(Ability::Replace)?;
    store.check_mode(new.mode)?;
    if old.ttl <= new.ttl {
        return Ok(());
    }
    // If the answer is lost, the holder relies on the old lease, and the new one must not end before that.
    let problem = format!("it is shorter than the {} that the lock is held with", old.ttl);
    Err(Invalid::new("ttl", new.ttl, problem, "give one that is at least as long").into())
}
