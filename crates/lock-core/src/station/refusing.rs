//! Rejecting waiters: those whose wait is over, and those that do not wait; and the reason.

use std::time::Duration;

use super::Station;
use super::io::{Output, TurnId};
use super::line::Waiter;
use super::quest::Quest;
use crate::{AcquireError, BackendError, Effect, ErrorKind, Holder, Mode, Moment, Operation, Refusal};

impl Station {
    pub(super) fn refuse_overdue(&mut self, now: Moment) {
        for waiter in self.line.take_overdue(now) {
            self.refuse_late(now, &waiter);
        }
    }

    /// A claim was answered. If nothing was granted, rejects the waiters that accept no further answer.
    pub(super) fn refuse_exhausted(&mut self, now: Moment) {
        // A grant that came too late is asked for again: the store did not refuse it.
        let granted_nothing =
            self.quests.first().is_some_and(|quest| quest.progress.due().is_some() && quest.stale_answers == 0);
        if granted_nothing {
            for waiter in self.line.take_exhausted() {
                self.refuse_late(now, &waiter);
            }
        }
    }

    fn refuse_late(&mut self, now: Moment, waiter: &Waiter) {
        let waited = whole_millis(now.since(waiter.since));
        // A reader that waits for the store's word about others does not wait for those who hold here.
        let awaits_word = waiter.join.terms.mode == Mode::Shared
            && self.tenures.first().is_some_and(|tenure| tenure.word_asked_at.is_some());
        let error = match (self.trouble(), self.known_holder().filter(|_| !awaits_word)) {
            (Some(trouble), _) => AcquireError::Backend(trouble.clone()),
            (None, holder @ Some(_)) => AcquireError::TimedOut { name: self.name.clone(), waited, holder },
            (None, None) => AcquireError::Backend(self.no_answer(waited)),
        };
        self.refuse([waiter.join.turn], &Refusal::Error(error));
    }

    pub(super) fn refuse_impatient(&mut self, holder: Option<Holder>) {
        let waiters = self.line.take_impatient();
        self.refuse(turns(waiters), &Refusal::Busy { holder });
    }

    pub(super) fn fail_impatient(&mut self, error: &BackendError) {
        let waiters = self.line.take_impatient();
        self.refuse(turns(waiters), &Refusal::Error(error.clone().into()));
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
        match (self.tenures.first(), self.quests.first().map(AsRef::as_ref)) {
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
        match self.tenures.first() {
            Some(tenure) => tenure.as_holder(),
            None => self.quests.first()?.holder.clone(),
        }
    }

    /// The wait is over, and the store has said nothing about the lock.
    fn no_answer(&self, waited: Duration) -> BackendError {
        let waited = humantime::format_duration(waited);
        let message = format!("the store did not answer the request for the lock \"{}\" within {waited}", self.name);
        BackendError::new(self.policy.store.backend, Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
            .with_remedy("check that the store is running and reachable, or wait for longer")
    }
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn turns(waiters: impl IntoIterator<Item = Waiter>) -> impl Iterator<Item = TurnId> {
    waiters.into_iter().map(|waiter| waiter.join.turn)
}
