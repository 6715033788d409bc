//! Asking for the lease: claims, answers, and what the store tells meanwhile.

use std::time::Duration;

use super::Station;
use super::io::{ActionId, Request};
use super::state::{Asked, Attempt, Grant, Standing, State};
use crate::policy::pace;
use crate::{
    AcquireError, Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Event, Holder, Mode, Moment, Operation,
    Ordering, Queueing, Waiting,
};

impl Station {
    /// Begins an attempt for the front waiter.
    pub(super) fn ask_first(&mut self, now: Moment) {
        let in_order = self.policy.ordering == Ordering::InOrder;
        if !in_order && self.farewells.any_under_way() {
            return;
        }
        let Some((owner, ttl)) = self.line.next_owner() else { return };
        let (standing, certainty) = (Standing::Outside, Certainty::Answered);
        let attempt = Attempt { owner, ttl, basis: now, standing, certainty, tries: 0, holder: None, trouble: None };
        self.ask(now, attempt);
    }

    /// Asks again for the attempt that waits.
    pub(super) fn ask_again(&mut self, now: Moment) {
        if let State::Waiting(mut attempt, _) = std::mem::replace(&mut self.state, State::Idle) {
            if attempt.standing == Standing::Outside {
                attempt.basis = now;
            }
            self.ask(now, attempt);
        }
    }

    pub(super) fn ask_again_at(&mut self, at: Moment) {
        if let State::Waiting(_, again_at) = &mut self.state {
            *again_at = at.min(*again_at);
        }
    }

    fn ask(&mut self, now: Moment, attempt: Attempt) {
        let Some(note) = self.line.first_with(attempt.ttl).map(|waiter| waiter.join.note.clone()) else {
            self.leave_queue(now, &attempt);
            return;
        };
        let claim = Claim {
            name: self.name.clone(),
            owner: attempt.owner,
            mode: Mode::Exclusive,
            ttl: attempt.ttl,
            width: self.line.width(attempt.ttl, self.policy.chain),
            floor: self.floor,
            note,
            queueing: self.line.queueing(),
        };
        let within = self.policy.within(attempt.ttl);
        let id = self.run(Request::Acquire(claim), within);
        self.state = State::Asking(attempt, Asked { id, at: now });
    }

    pub(super) fn on_acquire_reply(&mut self, now: Moment, id: ActionId, result: Result<Answer, BackendError>) {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Asking(attempt, asked) if asked.id == id => self.on_answer(now, attempt, asked, result),
            State::Held(held) if held.asked.is_some_and(|asked| asked.id == id) => {
                self.state = State::Held(held);
                self.on_late_answer(now, result);
            }
            other @ (State::Idle | State::Asking(..) | State::Waiting(..) | State::Held(_) | State::Closed) => {
                self.state = other;
            }
        }
    }

    fn on_answer(&mut self, now: Moment, mut attempt: Attempt, asked: Asked, result: Result<Answer, BackendError>) {
        if result.is_ok() {
            attempt.basis = asked.at;
            attempt.trouble = None;
        }
        match result {
            Ok(Answer::Granted { lease, .. }) if lease.owner != attempt.owner || lease.name != self.name => {
                let message = "the store granted a lease to another owner than the one that asked";
                let error =
                    BackendError::new("backend", Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, message);
                self.on_ask_error(now, attempt, error);
            }
            Ok(Answer::Granted { lease, valid_for }) => {
                let grant = Grant { lease, basis: asked.at, valid_for };
                self.on_grant(now, attempt, grant, None);
            }
            Ok(Answer::Queued { position, remaining, valid_for, holder }) => {
                attempt.standing = Standing::InQueue;
                self.refuse_impatient(Some(&holder));
                let refresh = asked.at + valid_for / 3;
                let wake = self.queue_pace(&holder, remaining, position);
                self.wait(attempt, holder, refresh.min(now + wake).max(now + pace::SOONEST));
            }
            Ok(Answer::Busy { remaining, holder }) => {
                attempt.standing = Standing::Outside;
                self.refuse_impatient(Some(&holder));
                let poll = self.dice.jittered(pace::poll(attempt.tries));
                let wake = remaining.map_or(poll, |remaining| poll.min(pace::after_expiry(remaining, 1)));
                self.wait(attempt, holder, now + wake);
            }
            Err(error) => self.on_ask_error(now, attempt, error),
        }
    }

    /// How long a place in the queue may be left alone.
    fn queue_pace(&mut self, holder: &Holder, remaining: Option<Duration>, position: u32) -> Duration {
        let told = self.policy.waiting == Waiting::QueueWithPush && *holder != Holder::Foreign;
        let quiet = if told { Duration::MAX } else { self.dice.jittered(pace::SILENT_QUEUE) };
        remaining.map_or(quiet, |remaining| quiet.min(pace::after_expiry(remaining, position)))
    }

    fn wait(&mut self, mut attempt: Attempt, holder: Holder, again_at: Moment) {
        attempt.holder = Some(holder);
        attempt.tries = attempt.tries.saturating_add(1);
        self.state = State::Waiting(attempt, again_at);
    }

    fn on_ask_error(&mut self, now: Moment, mut attempt: Attempt, error: BackendError) {
        let unsure = error.effect() == Effect::Unknown;
        let in_queue = attempt.standing == Standing::InQueue;
        let again = error.kind().is_transient() && self.line.queueing() == Queueing::Wanted;
        if again {
            for waiter in self.line.take_impatient() {
                self.outbox.push_back(super::refused(waiter.join.turn, error.clone().into()));
            }
        } else {
            self.refuse_all(&error.clone().into());
        }
        attempt.trouble = Some(error);
        // Asking again from the queue means the same as before, so the place is kept. A first claim whose outcome is
        // not known is given up, and the next one has another owner.
        if unsure && !(again && in_queue) {
            self.part(now, attempt.owner, attempt.ttl, Certainty::Unknown, None);
        } else if !again {
            self.leave_queue(now, &attempt);
        }
        if again {
            if unsure && in_queue {
                attempt.certainty = Certainty::Unknown;
            } else if unsure {
                (attempt.owner, attempt.ttl) =
                    self.line.next_owner().unwrap_or((attempt.owner.successor(), attempt.ttl));
            }
            let again_at = now + self.dice.jittered(pace::retry(attempt.tries));
            attempt.tries = attempt.tries.saturating_add(1);
            self.state = State::Waiting(attempt, again_at);
        }
    }

    /// A grant, by reply or by transfer: somebody is admitted, it is asked for again, or it is given back.
    pub(super) fn on_grant(&mut self, now: Moment, mut attempt: Attempt, grant: Grant, asked: Option<Asked>) {
        let token = grant.lease.tokens.low();
        if let Some(floor) = self.floor.filter(|floor| token <= *floor) {
            self.part(now, attempt.owner, attempt.ttl, attempt.certainty(asked), None);
            self.refuse_all(&AcquireError::Forgotten { name: self.name.clone(), token, floor });
        } else if self.line.first_with(grant.lease.ttl).is_none() {
            self.part(now, attempt.owner, attempt.ttl, attempt.certainty(asked), None);
        } else if grant.is_stale(now) {
            attempt.standing = Standing::InQueue;
            self.state = match asked {
                Some(asked) => State::Asking(attempt, asked),
                None => State::Waiting(attempt, now + self.dice.jittered(pace::poll(0))),
            };
        } else {
            self.admit_first(now, grant, asked, attempt.certainty);
        }
    }

    pub(super) fn on_event(&mut self, now: Moment, event: Event) {
        match event {
            Event::Granted { lease, .. } if lease.name != self.name => {}
            Event::Freed { name } if name != self.name => {}
            Event::Granted { lease, valid_for } => self.on_transfer(now, lease, valid_for),
            Event::Freed { .. } | Event::RecheckAll => self.ask_again_at(now),
        }
    }

    fn on_transfer(&mut self, now: Moment, lease: crate::Lease, valid_for: Duration) {
        let (attempt, asked) = match std::mem::replace(&mut self.state, State::Idle) {
            State::Asking(attempt, asked) if attempt.owner == lease.owner => (attempt, Some(asked)),
            State::Waiting(attempt, _) if attempt.owner == lease.owner => (attempt, None),
            other @ (State::Idle | State::Asking(..) | State::Waiting(..) | State::Held(_) | State::Closed) => {
                let known = matches!(&other, State::Held(held) if held.lease.owner == lease.owner);
                self.state = other;
                if !known && !self.farewells.includes(lease.owner) {
                    self.part(now, lease.owner, lease.ttl, Certainty::Answered, None);
                }
                return;
            }
        };
        if attempt.is_ahead_of(&lease) {
            self.state = match asked {
                Some(asked) => State::Asking(attempt, asked),
                None => State::Waiting(attempt, now),
            };
            return;
        }
        let grant = Grant { lease, basis: attempt.basis, valid_for };
        self.on_grant(now, attempt, grant, asked);
    }
}
