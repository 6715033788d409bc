//! Replacing: the only turn under a lease goes on under another one, in one step at the store.
//!
//! The hold goes on under the old lease until the store has granted the new one. While a claim is not answered, the store
//! may have either; so it is asked again with the same two owners, a "not held" for the old one means nothing, and if the
//! hold ends, both are released.

use std::sync::Arc;

use super::Station;
use super::io::{ActionId, Output, Request, TurnId};
use super::progress::Progress;
use super::quest::Grant;
use super::replacement::Replacement;
use super::tenure::Tenure;
use crate::policy::pace;
use crate::{
    Ability, AcquireError, Answer, BackendError, Capabilities, Certainty, Claim, Effect, Fairness, Invalid, LossReason,
    Mode, Moment, Owner, Queueing, Refusal, Terms,
};

impl Station {
    /// A holder wants other terms.
    pub(super) fn on_replace(&mut self, now: Moment, turn: TurnId, terms: Terms) {
        let Some(tenure) = self.tenures.iter_mut().find(|tenure| tenure.has(turn)) else { return };
        let busy = tenure.turns.len() > 1 || tenure.replacement.is_some();
        let old = tenure.lease.terms;
        // Readers share a lease of any ttl.
        let terms =
            if old.mode.kind() == terms.mode.kind() { terms } else { Terms { ttl: terms.ttl.max(old.ttl), ..terms } };
        let refusal = match check(&self.policy.store, old, terms) {
            Err(error) => Refusal::Error(error),
            Ok(()) if busy => Refusal::Busy { holder: tenure.as_holder() },
            Ok(()) => {
                let replacement = Replacement::new(tenure.lease.owner, self.owners.draw(), terms, now);
                return tenure.replacement = Some(Box::new(replacement));
            }
        };
        self.outbox.push(Output::Replaced { turn, result: Err(refusal) });
    }

    /// When the claim to replace this lease is to go out, unless something else has to be answered first: a claim of the old
    /// owner, or releases, as the end of the hold may add two.
    pub(super) fn replacement_due(&self, tenure: &Tenure) -> Option<Moment> {
        let due = tenure.replacement.as_ref()?.progress.due()?;
        let asks = self.quests.iter().any(|quest| quest.owner == tenure.lease.owner);
        let free = !asks && self.may_replace(tenure);
        free.then_some(due)
    }

    /// Sends the claims that are due.
    pub(super) fn ask_replacements(&mut self, now: Moment) {
        let is_due = |tenure: &&Tenure| self.replacement_due(tenure).is_some_and(|due| due <= now);
        let due: Vec<_> = self.tenures.iter().filter(is_due).map(|tenure| tenure.lease.owner).collect();
        due.into_iter().for_each(|owner| self.ask_replacement(now, owner));
    }

    fn ask_replacement(&mut self, now: Moment, replaces: Owner) {
        let Some(tenure) = self.tenure_of(replaces) else { return };
        let note = tenure.turns.first().map(|(_, turn)| turn.note.clone());
        let (Some(mut replacement), Some(note)) = (tenure.replacement.take(), note) else { return };
        if replacement.tries == 0 {
            replacement.floor = self.floor.get();
        }
        replacement.tries = replacement.tries.saturating_add(1);
        let claim = Claim {
            name: self.name.clone(),
            owner: replacement.owner,
            terms: replacement.terms,
            width: replacement.terms.mode.width(),
            floor: replacement.floor,
            note,
            queueing: Queueing::Unwanted,
            replaces: Some(replaces),
            fairness: Fairness::Fair,
        };
        replacement.progress = self.run(now, Request::Acquire(claim), replacement.terms);
        self.go_on_replacing(replacement);
    }

    fn go_on_replacing(&mut self, replacement: Box<Replacement>) {
        if let Some(tenure) = self.tenure_of(replacement.replaces) {
            tenure.replacement = Some(replacement);
        }
    }

    /// The replacement that this action was for, and when it was handed out.
    pub(super) fn take_replacement(&mut self, id: ActionId) -> Option<(Moment, Box<Replacement>)> {
        let asked_at = |tenure: &Tenure| tenure.replacement.as_ref()?.progress.asked_at(id);
        let (tenure, asked_at) = self.tenures.iter_mut().find_map(|tenure| asked_at(tenure).map(|at| (tenure, at)))?;
        Some((asked_at, tenure.replacement.take()?))
    }

    pub(super) fn on_replacement_answer(
        &mut self,
        now: Moment,
        asked_at: Moment,
        mut replacement: Box<Replacement>,
        result: Result<Answer, BackendError>,
    ) {
        let Some(old) = self.tenure_of(replacement.replaces).map(|tenure| Arc::clone(&tenure.lease)) else { return };
        let effect = match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) if replacement.is_granted_by(&lease, &old) => {
                let grant = Grant { lease, basis: asked_at, valid_for, wanted };
                if self.is_outlived(&grant.lease) {
                    let replaces = replacement.replaces;
                    self.go_on_replacing(replacement);
                    return self.lose_lease(now, replaces, &LossReason::NotHeld);
                }
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
            Err(error) if error.effect() == Effect::None && replacement.never_happened(now) => {
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
        let Some(tenure) = self.tenure_of(replacement.replaces) else { return };
        let Some(turn) = tenure.turns.first().map(|(id, _)| id) else { return };
        self.outbox.push(Output::Replaced { turn, result: Err(refusal) });
        if let Some(reason) = &replacement.old_is_gone {
            self.lose_lease(now, replacement.replaces, reason);
        }
    }

    /// The turn goes on under the new lease.
    fn go_on_under(&mut self, now: Moment, grant: Grant, replacement: &Replacement) {
        let is_old = |tenure: &Tenure| tenure.lease.owner == replacement.replaces;
        let Some(mut old) = self.tenures.take(is_old) else { return };
        let Some((id, before)) = old.take_first() else { return };
        let certainty = match replacement.unanswered_until {
            Some(_) => Certainty::Unknown,
            None => Certainty::Answered,
        };
        self.outbox.push(Output::Forget(old.lease.owner));
        let token = grant.lease.tokens.low();
        self.lose_excluded(now, &grant.lease);
        // Nobody here waits at the store beside an exclusive lease, unless it was adopted.
        if old.is_shared() && !old.adopted {
            self.give_up_quests(now);
        }
        let mut tenure = self.keep(now, grant, certainty);
        (tenure.passes, tenure.adopted) = (old.passes, old.adopted);
        let hold = tenure.begin(now, id, token, before.note.clone(), before.hold.hold_until);
        before.hold.go_on_as(Arc::clone(&hold));
        self.raise_floor(&tenure.lease, token);
        self.outbox.push(Output::Replaced { turn: id, result: Ok(hold) });
        self.tenures.push(tenure);
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
