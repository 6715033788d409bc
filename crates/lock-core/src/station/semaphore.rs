//! Semaphores: each waiter asks for a lease of its own, and each turn holds under one.

use super::Station;
use super::attempt::{Attempt, Place, Purpose};
use super::io::{Join, TurnId};
use super::progress::Progress;
use super::releases::NextClaim;
use super::waiter::Waiter;
use crate::policy::ATTEMPTS_MAX;
use crate::{Fairness, Moment, RequestOrder, Terms};

impl Station {
    /// Begins an attempt for each waiter that may have one.
    pub(super) fn ask_each(&mut self, now: Moment) {
        while let Some((turn, terms)) = self.next_to_ask() {
            let attempt = Attempt::new(self.owners.draw(), terms, Purpose::Waiter(turn), now);
            self.ask(now, Box::new(attempt));
        }
        self.refuse_behind_the_first();
    }

    /// The first waiter that has no attempt, if it may have one, or else the first barging one.
    fn next_to_ask(&self) -> Option<(TurnId, Terms)> {
        if self.attempts.iter().filter(|attempt| attempt.may_queue()).count() >= ATTEMPTS_MAX {
            return None;
        }
        let has_none = |waiter: &&Waiter| self.attempt_for(waiter.join.turn).is_none();
        let first = self.waiters.iter().find(has_none)?;
        let Join { turn, terms, fairness, .. } = first.join;
        let passes = self.would_pass(turn, (terms, fairness));
        let Join { turn, terms, .. } = if passes { self.waiters.barging().find(has_none)? } else { first }.join;
        let is_in_the_way = |attempt: &Attempt| {
            attempt.may_queue() && !attempt.terms.mode.suits(terms.mode) && self.waiter_of(attempt).is_none()
        };
        let has_to_wait = self.attempts.iter().any(is_in_the_way)
            || self.is_release_due(NextClaim { mode: Some(terms.mode), ..self.next() });
        (!has_to_wait).then_some((turn, terms))
    }

    /// The attempt for this waiter alone.
    pub(super) fn attempt_for(&self, turn: TurnId) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.turn() == Some(turn))
    }

    /// Whether the next claim of an attempt might be served before that of a waiter that came earlier.
    pub(super) fn would_overtake(&self, attempt: &Attempt) -> bool {
        let Purpose::Waiter(turn) = attempt.purpose else { return false };
        let join = self.waiters.get(turn).map(|waiter| &waiter.join);
        join.is_some_and(|join| self.would_pass(turn, (join.terms, join.fairness)))
    }

    /// Whether a claim of this waiter might be served before one that came earlier and wants something else. If both want
    /// the same, that does not matter: the grant is for the first of them. One that is barging may overtake.
    fn would_pass(&self, turn: TurnId, wanted: (Terms, Fairness)) -> bool {
        let ordered = self.policy.store.ordering == RequestOrder::InOrder;
        let is_behind = |attempt: &Attempt| match attempt.progress {
            Progress::InFlight(..) => ordered || attempt.place == Place::Queued,
            Progress::Due(_) => attempt.place == Place::Queued,
        };
        let came_first =
            |attempt: &Attempt| attempt.turn().is_some_and(|first| first < turn && self.waiters.get(first).is_some());
        let is_other = |attempt: &Attempt| (attempt.terms, attempt.fairness) != wanted;
        wanted.1 == Fairness::Fair
            && self.attempts.iter().any(|attempt| came_first(attempt) && is_other(attempt) && !is_behind(attempt))
    }

    /// A grant is for the front waiter that wants the same. That one leaves its own attempt to the waiter that this was for.
    pub(super) fn exchange(&mut self, now: Moment, attempt: &mut Attempt) {
        let Purpose::Waiter(turn) = attempt.purpose else { return };
        let came_before = self.waiters.iter().map(|waiter| &waiter.join).take_while(|join| join.turn < turn);
        let wanted = (attempt.terms, attempt.fairness);
        let mut wants_the_same = came_before.filter(|join| (join.terms, join.fairness) == wanted);
        let Some(first) = wants_the_same.next().map(|join| join.turn) else { return };
        attempt.purpose = Purpose::Waiter(first);
        if let Some(other) = self.attempts.iter_mut().find(|other| other.turn() == Some(first)) {
            other.purpose = Purpose::Waiter(turn);
            // The waiter may be one that does not wait: it should have an answer soon.
            other.may_be_free(now);
        }
    }

    /// Rejects the waiters that do not wait and have not asked, if others wait at the store already.
    fn refuse_behind_the_first(&mut self) {
        if let Some(holder) = self.first_attempt().and_then(|attempt| attempt.holder.clone()) {
            self.refuse_impatient(Some(holder));
        }
    }
}
