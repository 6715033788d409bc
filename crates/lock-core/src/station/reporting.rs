//! Reports events to observers, where they are decided.

use std::mem;
use std::time::Duration;

use super::Station;
use super::event::Event;
use super::held_lease::Late;
use super::io::{Join, LongWaits, TurnId};
use super::observed::{Contention, ReportedHold};
use super::outcome::Outcome;
use super::releases::PendingRelease;
use super::wait_queue::WaitQueue;
use super::waiter::Waiter;
use crate::{Answer, BackendError, FencingToken, LockName, LossReason, Mode, Moment, Owner, Released};

impl Station {
    /// The same for a client that is observed: it has [events](Self::take_events).
    #[must_use]
    pub fn observed(self) -> Self {
        Self { observed: Some(Box::default()), ..self }
    }

    /// The events since the last call, for observers: each with the turn that waits, or did until then.
    pub fn take_events(&mut self) -> Vec<(Option<TurnId>, Event)> {
        self.observed.as_mut().map(|observed| mem::take(&mut observed.events)).unwrap_or_default()
    }

    fn report(&mut self, turn: Option<TurnId>, event: impl FnOnce(LockName) -> Event) {
        if let Some(observed) = &mut self.observed {
            observed.events.push((turn, event(self.name.clone())));
        }
    }

    /// The state of all waiters, if there are any and somebody observes.
    fn contention(&mut self) -> Option<&mut Contention> {
        let waits = !self.nobody_waits();
        self.observed.as_mut().filter(|_| waits).map(|observed| &mut observed.waiters)
    }

    /// A waiter whose long waits nobody observes needs no alarm for them.
    pub(super) fn reported(&self, join: Join) -> Join {
        let long_waits = if self.observed.is_some() { join.long_waits } else { LongWaits::Expected };
        Join { long_waits, ..join }
    }

    /// A waiter has joined. What is held here keeps it out, if nobody else can hold beside it.
    pub(super) fn found_held(&mut self, now: Moment) {
        if self.leases.first().is_some_and(|held| held.lease.terms.mode == Mode::Exclusive) {
            self.found_taken(now);
        }
    }

    /// Others have what the waiters here wait for.
    pub(super) fn found_taken(&mut self, now: Moment) {
        self.contention().map(|waiters| waiters.taken_since.get_or_insert(now));
    }

    /// Records whether the lock is taken, from an answer to a claim.
    pub(super) fn found(&mut self, now: Moment, answer: &Result<Answer, BackendError>) {
        match answer {
            Ok(Answer::Queued { position, .. }) => {
                self.found_taken(now);
                self.contention().map(|waiters| waiters.position.get_or_insert(*position));
            }
            Ok(Answer::Busy { .. }) => self.found_taken(now),
            Ok(Answer::Granted { .. }) | Err(_) => {}
        }
    }

    /// For how much of its wait others are known to have had the lock.
    fn contended(&self, waiter: &Waiter) -> Option<Duration> {
        self.observed.as_ref()?.waiters.taken_since.map(|taken| self.last_now.since(taken.max(waiter.since)))
    }

    pub(super) fn report_acquired(&mut self, waiter: &Waiter, token: FencingToken) {
        let (waited, contended) = (self.last_now.since(waiter.since), self.contended(waiter));
        let Some(observed) = &mut self.observed else { return };
        let position = observed.waiters.position.take();
        let hold = ReportedHold { token, since: self.last_now, failed_at: None };
        observed.holds.insert(waiter.join.turn, hold);
        let event = |lock| Event::Acquired { lock, token, waited, contended, position };
        self.report(Some(waiter.join.turn), event);
    }

    pub(super) fn report_not_acquired(&mut self, waiter: &Waiter, outcome: impl FnOnce() -> Outcome) {
        let (waited, contended) = (self.last_now.since(waiter.since), self.contended(waiter));
        let event = |lock| Event::NotAcquired { lock, waited, contended, outcome: outcome() };
        self.report(Some(waiter.join.turn), event);
    }

    /// Reports the waits that have become long. Forgets what was known of the waiters if there are none.
    pub(super) fn report_waits(&mut self, now: Moment) {
        if self.nobody_waits() {
            self.observed.iter_mut().for_each(|observed| observed.waiters = Contention::default());
        }
        let take_long = |station: &mut Self| station.queues().find_map(|queue| queue.take_long(now));
        while let Some((turn, waited)) = take_long(self) {
            let (holder, error) = (self.known_holder(), self.last_error().cloned());
            self.report(Some(turn), |lock| Event::WaitingLong { lock, waited, holder, error });
        }
    }

    /// When the next long wait is to be reported.
    pub(super) fn next_long(&self) -> Option<Moment> {
        let adopters = self.adopters.as_deref().and_then(WaitQueue::next_long);
        self.waiters.next_long().into_iter().chain(adopters).min()
    }

    pub(super) fn report_renewed_late(&mut self, owner: Owner, Late { by, remaining }: Late) {
        let Some(token) = self.lease_of(owner).and_then(|held| Some(held.turns.first()?.1.hold.token())) else {
            return;
        };
        self.report(None, |lock| Event::RenewedLate { lock, token, late: by, remaining });
    }

    /// The hold of a turn goes on with another token.
    pub(super) fn report_replaced(&mut self, turn: TurnId, token: FencingToken) {
        let hold = self.observed.as_mut().and_then(|observed| observed.holds.get_mut(turn));
        hold.into_iter().for_each(|hold| hold.token = token);
    }

    /// The hold of a turn, whose end is to be reported.
    pub(super) fn take_reported(&mut self, turn: TurnId) -> Option<ReportedHold> {
        self.observed.as_mut()?.holds.remove(turn)
    }

    /// The client was closed by the program, which is no loss, unless a defect has closed it.
    pub(super) fn report_lost(&mut self, turn: TurnId, reason: LossReason) {
        match self.take_reported(turn) {
            Some(hold) if reason == LossReason::Closed && !self.broken => self.report_released(hold),
            Some(ReportedHold { token, since, .. }) => {
                let held = self.last_now.since(since);
                self.report(None, |lock| Event::Lost { lock, token, held, reason });
            }
            None => {}
        }
    }

    /// Reports what is held as lost. A station that has panicked may not know its leases any more.
    pub(super) fn report_broken(&mut self) {
        while let Some(turn) = self.observed.as_ref().and_then(|observed| observed.holds.first_turn()) {
            self.report_lost(turn, LossReason::Closed);
        }
    }

    pub(super) fn report_detached(&mut self, turn: TurnId) {
        if let Some(ReportedHold { token, since, .. }) = self.take_reported(turn) {
            let held = self.last_now.since(since);
            self.report(None, |lock| Event::Detached { lock, token, held });
        }
    }

    /// The turn has ended at the store, or its lease was passed on.
    pub(super) fn report_released(&mut self, ended: ReportedHold) {
        let (token, held) = (ended.token, ended.held(self.last_now));
        let pending = ended.failed_at.map(|failed_at| self.last_now.since(failed_at));
        self.report(None, |lock| Event::Released { lock, token, held, pending });
    }

    /// The release of a turn that has ended was answered.
    pub(super) fn report_end(&mut self, pending: &mut PendingRelease, result: &Result<Released, BackendError>) {
        let Some(ended) = &mut pending.ended else { return };
        let (now, token, is_first) = (self.last_now, ended.token, ended.failed_at.is_none());
        match result {
            Ok(Released::Left | Released::NotHeld) if is_first => {
                let (held, reason) = (ended.held(now), LossReason::NotHeld);
                self.report(None, |lock| Event::Lost { lock, token, held, reason });
            }
            Ok(_) => {
                let ended = *ended;
                self.report_released(ended);
            }
            Err(error) if is_first => {
                let (held, error) = (ended.held(now), error.clone());
                ended.failed_at = Some(now);
                self.report(None, |lock| Event::ReleasePending { lock, token, held, error });
            }
            Err(_) => {}
        }
    }

    /// A release is not repeated any more.
    pub(super) fn report_given_up(&mut self, pending: &PendingRelease) {
        if let Some(ReportedHold { token, failed_at: Some(failed_at), .. }) = pending.ended {
            let pending = self.last_now.since(failed_at);
            self.report(None, |lock| Event::ReleaseGivenUp { lock, token, pending });
        }
    }
}
