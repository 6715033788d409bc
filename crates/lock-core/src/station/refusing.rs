//! Rejecting waiters: those whose wait is over, and those that do not wait; and the reason.

use std::time::Duration;

use super::Station;
use super::io::{Output, TurnId};
use super::line::Waiter;
use super::quest::Quest;
use crate::{AcquireError, BackendError, Effect, ErrorKind, Holder, Mode, Moment, NameKind, Operation, Refusal};

impl Station {
    pub(super) fn refuse_overdue(&mut self, now: Moment) {
        for waiter in self.line.take_overdue(now) {
            self.refuse_late(now, &waiter);
        }
        self.refuse_overdue_adoptions(now);
    }

    /// A claim for this waiter, or for the first in line, was answered. If nothing was granted, rejects the waiters that
    /// accept no further answer.
    pub(super) fn refuse_exhausted(&mut self, now: Moment, turn: Option<TurnId>) {
        let Some(quest) = self.quests.iter().find(|quest| quest.turn == turn) else { return };
        // A grant that came too late is asked for again: the store did not refuse it.
        if quest.progress.due().is_none() || quest.stale_answers > 0 {
            return;
        }
        let is_last = |waiter: &&Waiter| waiter.join.attempts.is_some_and(|most| most.get() <= quest.tries);
        let exhausted = match turn {
            Some(turn) if self.line.get(turn).filter(is_last).is_some() => self.line.leave(turn).into_iter().collect(),
            Some(_) => Vec::new(),
            None => self.line.take_exhausted(),
        };
        exhausted.iter().for_each(|waiter| self.refuse_late(now, waiter));
    }

    fn refuse_late(&mut self, now: Moment, waiter: &Waiter) {
        let turn = waiter.join.turn;
        let own = self.quests.iter().find(|quest| quest.turn == Some(turn));
        let quest = own.or_else(|| self.first_quest());
        let waited = whole_millis(now.since(waiter.since));
        // A reader that waits for the store's word about others does not wait for those who hold here.
        let awaits_word = waiter.join.terms.mode == Mode::Shared
            && self.common().is_some_and(|tenure| tenure.word_asked_at.is_some());
        let error = match (self.trouble_of(quest), self.holder_known_to(quest).filter(|_| !awaits_word)) {
            (Some(trouble), _) => AcquireError::Backend(trouble.clone()),
            (None, holder @ Some(_)) => AcquireError::TimedOut { name: self.name.clone(), waited, holder },
            (None, None) => AcquireError::Backend(self.no_answer(waited)),
        };
        self.refuse([turn], &Refusal::Error(error));
    }

    /// The store has answered a quest without a grant: rejects those that it is for and that do not wait.
    pub(super) fn refuse_answered(&mut self, quest: &Quest) {
        let waiters = self.line.take_impatient(|turn| quest.turn.is_none_or(|own| own == turn));
        self.refuse(turns(waiters), &Refusal::Busy { holder: quest.holder.clone() });
    }

    /// Rejects the waiters that do not wait and have no quest of their own.
    pub(super) fn refuse_impatient(&mut self, holder: Option<Holder>) {
        let waiters = self.line.take_impatient(|turn| self.quests.iter().all(|quest| quest.turn != Some(turn)));
        self.refuse(turns(waiters), &Refusal::Busy { holder });
    }

    /// A request that may succeed later has failed. Rejects those that do not wait for that: of the waiter with this turn, and of
    /// those that have no quest of their own.
    pub(super) fn fail_impatient(&mut self, now: Moment, own: Option<TurnId>, error: &BackendError) {
        // A store that says when it will grant again is not away.
        self.failing_since = error.end().is_none().then(|| self.failing_since.unwrap_or(now));
        let failing_since = self.failing_since;
        let is_served = |turn| own == Some(turn) || self.quests.iter().all(|quest| quest.turn != Some(turn));
        let impatient = self.line.take_impatient(is_served);
        let gives_up = |waiter: &Waiter| {
            let is_over = |since: Moment| waiter.join.gives_up_after(now.since(since.max(waiter.since)), &self.policy);
            is_served(waiter.join.turn) && failing_since.is_some_and(is_over)
        };
        let failing = self.line.take_failing(gives_up);
        self.refuse(turns(impatient), &Refusal::Error(error.clone().into()));
        self.refuse(turns(failing), &Refusal::Error(away(error).into()));
    }

    /// Rejects the waiter that a quest is for, or all in line.
    pub(super) fn refuse_served(&mut self, turn: Option<TurnId>, error: AcquireError) {
        match turn {
            Some(turn) => {
                let waiter = self.line.leave(turn);
                self.refuse(waiter.map(|_| turn), &Refusal::Error(error));
            }
            None => self.refuse_all(error),
        }
    }

    pub(super) fn refuse_all(&mut self, error: AcquireError) {
        let waiters = self.line.take_all();
        self.refuse(turns(waiters), &Refusal::Error(error));
    }

    /// Rejects waiters that were taken out of the line.
    pub(super) fn refuse(&mut self, turns: impl IntoIterator<Item = TurnId>, refusal: &Refusal) {
        self.outbox.extend(turns.into_iter().map(|turn| Output::Refuse { turn, refusal: refusal.clone() }));
    }

    /// Why the store does not grant the lock to those who wait for it, if that is so: the error of the latest request.
    #[must_use]
    pub fn trouble(&self) -> Option<&BackendError> {
        self.trouble_of(self.first_quest())
    }

    fn trouble_of<'a>(&'a self, quest: Option<&'a Quest>) -> Option<&'a BackendError> {
        let held = self.common().filter(|_| self.kind == NameKind::Lock);
        match (held, quest) {
            _ if self.closed => None,
            (Some(tenure), _) if tenure.word_asked_at.is_some() => tenure.last_error.as_ref(),
            (Some(tenure), _) if !tenure.is_shared() => None,
            (_, Some(Quest { trouble: Some(trouble), .. })) => Some(trouble),
            (Some(_), _) | (None, Some(Quest { holder: Some(_), .. })) => None,
            (None, Some(_) | None) => self.pending_releases.trouble(),
        }
    }

    /// Who holds the lock, as far as is known here.
    #[must_use]
    pub fn known_holder(&self) -> Option<Holder> {
        self.holder_known_to(self.first_quest())
    }

    fn holder_known_to(&self, quest: Option<&Quest>) -> Option<Holder> {
        match self.common().filter(|_| self.kind == NameKind::Lock) {
            Some(tenure) => tenure.as_holder(),
            None => quest?.holder.clone(),
        }
    }

    /// The quest for the first in line.
    pub(super) fn first_quest(&self) -> Option<&Quest> {
        let first = self.line.iter().next().map(|waiter| waiter.join.turn);
        self.quests.iter().find(|quest| quest.turn.is_none() || quest.turn == first)
    }

    /// The wait is over, and the store has said nothing about the lock.
    pub(super) fn no_answer(&self, waited: Duration) -> BackendError {
        let waited = humantime::format_duration(waited);
        let message = format!("the store did not answer the request for the lock \"{}\" within {waited}", self.name);
        BackendError::new(self.policy.store.backend, Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
            .with_remedy("check that the store is running and reachable, or wait for longer")
    }
}

/// The error for a waiter that could have waited for the store.
pub(super) fn away(error: &BackendError) -> BackendError {
    let wait = "to wait until the store is back, set `on_unavailable(OnUnavailable::Wait)`";
    let remedy = error.remedy().map_or_else(|| wait.to_owned(), |remedy| format!("{remedy}; {wait}"));
    error.clone().with_remedy(remedy)
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn turns(waiters: impl IntoIterator<Item = Waiter>) -> impl Iterator<Item = TurnId> {
    waiters.into_iter().map(|waiter| waiter.join.turn)
}
