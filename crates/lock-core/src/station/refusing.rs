//! Refusing waiters: those whose wait is over, and those who would not wait; and the reason.

use std::time::Duration;

use super::Station;
use super::io::{Output, refused};
use super::line::Waiter;
use super::phase::Phase;
use super::quest::{Attempt, Quest};
use crate::{AcquireError, BackendError, Effect, ErrorKind, Holder, Moment, Operation, Refusal};

impl Station {
    pub(super) fn refuse_overdue(&mut self, now: Moment) {
        for waiter in self.line.take_overdue(now) {
            self.refuse_late(now, &waiter);
        }
    }

    /// A claim was answered. Where that granted nothing, those are refused who wait for no further answer.
    pub(super) fn refuse_exhausted(&mut self, now: Moment) {
        // A grant that came too late is asked for again: the store did not refuse it.
        let granted_nothing = matches!(&self.quest, Some(Quest::Waiting(attempt, _)) if attempt.stale_answers == 0);
        if granted_nothing {
            for waiter in self.line.take_exhausted() {
                self.refuse_late(now, &waiter);
            }
        }
    }

    fn refuse_late(&mut self, now: Moment, waiter: &Waiter) {
        let waited = whole_millis(now.since(waiter.since));
        let error = match (self.trouble(), self.known_holder()) {
            (Some(trouble), _) => AcquireError::Backend(trouble.clone()),
            (None, holder @ Some(_)) => AcquireError::TimedOut { name: self.name.clone(), waited, holder },
            (None, None) => AcquireError::Backend(self.no_answer(waited)),
        };
        self.outbox.push_back(refused(waiter.join.turn, error));
    }

    pub(super) fn refuse_impatient(&mut self, holder: Option<&Holder>) {
        for waiter in self.line.take_impatient() {
            let refusal = Refusal::Busy { holder: holder.cloned() };
            self.outbox.push_back(Output::Refuse { turn: waiter.join.turn, refusal });
        }
    }

    pub(super) fn refuse_all(&mut self, error: &AcquireError) {
        for waiter in self.line.take_all() {
            self.outbox.push_back(refused(waiter.join.turn, error.clone()));
        }
    }

    pub(super) fn fail_impatient(&mut self, error: &BackendError) {
        for waiter in self.line.take_impatient() {
            self.outbox.push_back(refused(waiter.join.turn, error.clone().into()));
        }
    }

    /// Why the store does not grant the lock to those who wait for it, if that is so: the error of the latest request.
    #[must_use]
    pub fn trouble(&self) -> Option<&BackendError> {
        let attempt = self.quest.as_ref().map(Quest::attempt);
        match attempt {
            _ if self.tenure.is_some() || self.phase == Phase::Closed => None,
            Some(Attempt { trouble: Some(trouble), .. }) => Some(trouble),
            Some(Attempt { holder: Some(_), .. }) => None,
            Some(_) | None => self.pending_releases.trouble(),
        }
    }

    /// Who holds the lock, as far as is known here.
    #[must_use]
    pub fn known_holder(&self) -> Option<Holder> {
        match &self.tenure {
            Some(tenure) => tenure.as_holder(),
            None => self.quest.as_ref()?.attempt().holder.clone(),
        }
    }

    /// The wait is over, and the store has said nothing of the lock.
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
