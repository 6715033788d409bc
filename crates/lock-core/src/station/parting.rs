//! Giving attempts up: what the store may keep of them is released.

use super::Station;
use super::attempt::{Attempt, Place, Purpose};
use super::progress::Progress;
use crate::policy::ABANDONED_CLAIM_FOR;
use crate::{Answer, BackendError, Certainty, Effect, Moment};

impl Station {
    /// Ends all attempts that are like this, leaving nothing of them at the store.
    pub(super) fn give_up_all(&mut self, now: Moment, are_like_this: fn(&Attempt) -> bool) {
        while let Some(attempt) = self.attempts.take(are_like_this) {
            self.leave_queue(now, &attempt);
        }
    }

    /// Has the store release what it may keep for an attempt.
    pub(super) fn leave_queue(&mut self, now: Moment, attempt: &Attempt) {
        if !attempt.is_unknown_to_store() {
            self.part(now, attempt);
        }
    }

    /// Gives up the attempts whose waiters have left, or never come to the front with these terms. A claim that is under way is
    /// waited for.
    pub(super) fn part_from_unwanted(&mut self, now: Moment) {
        let is_unwanted = |attempt: &&Attempt| {
            attempt.is_for_waiter() && attempt.progress.due().is_some() && self.waiter_of(attempt).is_none()
        };
        let owners: Vec<_> = self.attempts.iter().filter(is_unwanted).map(|attempt| attempt.owner).collect();
        for owner in owners {
            self.take_attempt(owner).into_iter().for_each(|attempt| self.leave_queue(now, &attempt));
        }
    }

    /// When to give up an attempt whose claim is under way and that nobody here wants: its answer may be long in coming. An attempt whose
    /// owner holds already ends with the hold.
    pub(super) fn abandoned_until(&self, attempt: &Attempt) -> Option<Moment> {
        let (_, asked_at) = attempt.progress.under_way().filter(|_| attempt.is_for_waiter())?;
        let is_abandoned = self.waiter_of(attempt).is_none() && self.lease_of(attempt.owner).is_none();
        is_abandoned.then(|| asked_at + ABANDONED_CLAIM_FOR)
    }

    /// Gives up the attempts that nobody has wanted for long enough. Their releases may overtake the claims. Returns whether there were any.
    pub(super) fn part_from_abandoned(&mut self, now: Moment) -> bool {
        let is_over = |attempt: &&Attempt| self.abandoned_until(attempt).is_some_and(|end| end <= now);
        let owners: Vec<_> = self.attempts.iter().filter(is_over).map(|attempt| attempt.owner).collect();
        for owner in &owners {
            let Some(mut attempt) = self.take_attempt(*owner) else { continue };
            self.part(now, &attempt);
            (attempt.place, attempt.certainty) = (Place::Outside, Certainty::Answered);
            attempt.purpose = Purpose::Nothing(attempt.usage());
            self.attempts.push(attempt);
        }
        !owners.is_empty()
    }

    /// The answer to a claim that a release may have overtaken. What the store keeps of it, if it came after all, is released once
    /// more, unless that is under way or more would be owed than may be.
    pub(super) fn on_late_answer(&mut self, now: Moment, mut attempt: Attempt, result: &Result<Answer, BackendError>) {
        let usage = attempt.usage();
        let may_owe = self.releases.count(usage) < self.owed_most(usage);
        if !may_owe || self.releases.has(attempt.owner) {
            return;
        }
        attempt.progress = Progress::Due(now);
        match result {
            Ok(Answer::Granted { .. } | Answer::Queued { .. }) => attempt.place = Place::Queued,
            Err(error) if error.effect() == Effect::Unknown => attempt.certainty = Certainty::Unknown,
            Ok(Answer::Busy { .. }) | Err(_) => {}
        }
        self.leave_queue(now, &attempt);
    }
}
