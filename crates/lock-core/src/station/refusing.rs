//! Rejecting waiters: at the end of their wait, at the first answer, or for an error.

use std::sync::Arc;
use std::time::Duration;

use super::Station;
use super::attempt::Attempt;
use super::io::{Output, TurnId};
use super::wait_queue::WaitQueue;
use super::waiter::Waiter;
use crate::{AcquireError, BackendError, Effect, ErrorKind, Holder, Mode, Moment, Operation, Refusal};

/// Whether an error concerns the waiters that have no attempt of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unasked {
    Too,
    Not,
}

impl Station {
    pub(super) fn refuse_overdue(&mut self, now: Moment) {
        let overdue: Vec<_> = self.queues().flat_map(|queue| queue.take_overdue(now)).collect();
        overdue.into_iter().for_each(|waiter| self.refuse_late(now, waiter));
    }

    /// A claim for this waiter, or for the front waiter, was answered. If nothing was granted, rejects the waiters that
    /// accept no further answer.
    pub(super) fn refuse_exhausted(&mut self, now: Moment, turn: Option<TurnId>) {
        let is_it = |attempt: &&Attempt| attempt.is_for_waiter() && attempt.turn() == turn;
        let Some(attempt) = self.attempts.iter().find(is_it) else { return };
        // A grant that came too late is asked for again: the store did not refuse it.
        if attempt.progress.due().is_none() || attempt.may_queue() && attempt.stale_answers > 0 {
            return;
        }
        let is_last = |waiter: &Waiter| waiter.join.max_requests.is_some_and(|most| most.get() <= attempt.tries);
        let exhausted = match turn {
            Some(turn) if self.waiter_of(attempt).is_some_and(is_last) => self.take_waiter(turn).into_iter().collect(),
            Some(_) => Vec::new(),
            None => self.waiters.take_exhausted(),
        };
        exhausted.into_iter().for_each(|waiter| self.refuse_late(now, waiter));
    }

    /// The queues of local waiters. Adopters have their own, because they wait for no others.
    pub(super) fn queues(&mut self) -> impl Iterator<Item = &mut WaitQueue> {
        [&mut self.waiters].into_iter().chain(self.adopters.as_deref_mut())
    }

    pub(super) fn nobody_waits(&self) -> bool {
        self.waiters.is_empty() && self.adopters.as_ref().is_none_or(|queue| queue.is_empty())
    }

    /// Takes out a waiter, if it is in the queue.
    pub(super) fn take_waiter(&mut self, turn: TurnId) -> Option<Waiter> {
        let waiter = self.queues().find_map(|queue| queue.leave(turn));
        self.adopters.take_if(|queue| queue.is_empty());
        waiter
    }

    fn refuse_late(&mut self, now: Moment, waiter: Waiter) {
        let turn = waiter.join.turn;
        let attempt = self.attempt_for(turn).or_else(|| self.first_attempt());
        let waited = whole_millis(waiter.waited(now));
        // A reader that waits for the store's answer about others does not wait for the holders here.
        let awaits_refresh =
            waiter.join.terms.mode == Mode::Shared && self.common().is_some_and(|held| held.refresh_asked_at.is_some());
        let error = match (self.last_error_of(attempt), self.holder_known_to(attempt).filter(|_| !awaits_refresh)) {
            (Some(last_error), _) => AcquireError::Backend(last_error.clone()),
            (None, holder @ Some(_)) => AcquireError::TimedOut { name: self.name.clone(), waited, holder },
            (None, None) => AcquireError::Backend(self.no_answer(waited)),
        };
        self.refuse([waiter], &Refusal::Error(error));
    }

    /// The store has answered an attempt without a grant: rejects its waiters that do not wait.
    pub(super) fn refuse_answered(&mut self, attempt: &Attempt) {
        let waiters = self.waiters.take_impatient(|turn| attempt.turn().is_none_or(|own| own == turn));
        self.refuse(waiters, &Refusal::Busy { holder: attempt.holder.clone() });
    }

    /// Rejects the waiters that do not wait and have no attempt of their own.
    pub(super) fn refuse_impatient(&mut self, holder: Option<Holder>) {
        let waiters =
            self.waiters.take_impatient(|turn| self.attempts.iter().all(|attempt| attempt.turn() != Some(turn)));
        self.refuse(waiters, &Refusal::Busy { holder });
    }

    /// A request for waiters has failed, and may succeed later. Rejects those of them that do not wait for that.
    pub(super) fn fail_impatient(&mut self, now: Moment, whose: &Attempt, error: &BackendError) {
        let turns: Vec<_> = whose.turn().into_iter().collect();
        self.fail(now, error, &turns, if whose.may_queue() { Unasked::Too } else { Unasked::Not });
    }

    /// A request has failed that those wait for who have no attempt of their own.
    pub(super) fn fail_unasked(&mut self, now: Moment, error: &BackendError) {
        self.fail(now, error, &[], Unasked::Too);
    }

    /// A release has failed. Rejects the waiters that it holds back and that do not wait for that.
    pub(super) fn fail_held_back(&mut self, now: Moment, error: &BackendError) {
        let turns: Vec<_> = self
            .attempts
            .iter()
            .filter(|attempt| self.has_to_wait(attempt))
            .filter_map(|attempt| attempt.turn())
            .collect();
        let unasked = if self.common().is_none() && self.is_held_back() { Unasked::Too } else { Unasked::Not };
        if !turns.is_empty() || unasked == Unasked::Too {
            self.fail(now, error, &turns, unasked);
        }
    }

    fn fail(&mut self, now: Moment, error: &BackendError, own: &[TurnId], unasked: Unasked) {
        // A store that says when it will grant again is not away.
        self.failing_since = error.end().is_none().then(|| self.failing_since.unwrap_or(now));
        let (failing_since, policy) = (self.failing_since, Arc::clone(&self.policy));
        let others: Vec<_> = self.attempts.iter().filter_map(|attempt| attempt.turn()).collect();
        let is_served = |turn| own.contains(&turn) || unasked == Unasked::Too && !others.contains(&turn);
        let gives_up = |waiter: &Waiter| {
            let is_over = |since: Moment| waiter.join.gives_up_after(now.since(since.max(waiter.since)), &policy);
            is_served(waiter.join.turn) && failing_since.is_some_and(is_over)
        };
        let impatient: Vec<_> = self.queues().flat_map(|queue| queue.take_impatient(is_served)).collect();
        let failing: Vec<_> = self.queues().flat_map(|queue| queue.take_failing(gives_up)).collect();
        self.refuse(impatient, &Refusal::Error(error.clone().into()));
        self.refuse(failing, &Refusal::Error(away(error).into()));
    }

    /// Rejects the waiter that an attempt is for, or all in the queue.
    pub(super) fn refuse_served(&mut self, turn: Option<TurnId>, error: AcquireError) {
        match turn {
            Some(turn) => {
                let waiter = self.take_waiter(turn);
                self.refuse(waiter, &Refusal::Error(error));
            }
            None => {
                let waiters = self.waiters.take_all();
                self.refuse(waiters, &Refusal::Error(error));
            }
        }
    }

    /// Rejects all waiters.
    pub(super) fn refuse_all(&mut self, error: &AcquireError) {
        let waiters: Vec<_> = self.queues().flat_map(WaitQueue::take_all).collect();
        self.refuse(waiters, &Refusal::Error(error.clone()));
    }

    /// Rejects waiters that were taken out of the queue.
    pub(super) fn refuse(&mut self, waiters: impl IntoIterator<Item = Waiter>, refusal: &Refusal) {
        for waiter in waiters {
            let turn = waiter.join.turn;
            self.last_refused = Some(turn);
            self.outbox.push(Output::Refuse { turn, refusal: refusal.clone() });
            self.report_not_acquired(&waiter, || refusal.into());
        }
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
