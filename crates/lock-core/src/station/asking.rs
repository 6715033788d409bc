//! Asking for the lease: claims, answers, and what the store tells meanwhile.

use std::time::Duration;

use super::Station;
use super::io::{ActionId, Request};
use super::state::{Asked, Attempt, Grant, Hint, Place, State};
use crate::policy::pace;
use crate::{
    AcquireError, Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Event, Holder, Moment, Operation,
    Queueing, Ttl, Waiting,
};

/// So many stale grants in a row are a failure: the store answers too slowly for the ttl, and may go on to do so.
const STALE_ANSWERS_MAX: u32 = 3;

impl Station {
    /// Begins an attempt for the front waiter.
    pub(super) fn ask_first(&mut self, now: Moment) {
        if self.is_held_back() {
            return;
        }
        let Some((owner, terms)) = self.line.next_owner() else { return };
        self.ask(now, Attempt::new(owner, terms, now));
    }

    /// Asks again for the attempt that waits.
    pub(super) fn ask_again(&mut self, now: Moment) {
        if let State::Waiting(mut attempt, _) = std::mem::replace(&mut self.state, State::Idle) {
            if attempt.is_unknown_to_store() {
                attempt.basis = now;
            }
            self.ask(now, attempt);
        }
    }

    /// Has the next claim go out now; behind the one that is under way, if its answer is a no.
    fn recheck(&mut self, now: Moment) {
        match &mut self.state {
            State::Waiting(_, again_at) => *again_at = now.min(*again_at),
            State::Asking(_, asked) => asked.may_be_free(),
            State::Idle | State::Held(_) | State::Closed => {}
        }
    }

    fn ask(&mut self, now: Moment, mut attempt: Attempt) {
        let Some(note) = self.line.first_with(attempt.terms).map(|waiter| waiter.join.note.clone()) else {
            self.leave_queue(now, &attempt);
            return;
        };
        if attempt.is_unknown_to_store() {
            attempt.floor = self.floor.get();
        }
        let claim = Claim {
            name: self.name.clone(),
            owner: attempt.owner,
            terms: attempt.terms,
            width: self.line.width(attempt.terms, self.policy.chain),
            floor: attempt.floor,
            note,
            queueing: self.line.queueing(),
        };
        let within = self.policy.within(attempt.terms.ttl);
        let id = self.run(Request::Acquire(claim), within);
        self.state = State::Asking(attempt, Asked { id, at: now, hint: Hint::Nothing });
    }

    pub(super) fn on_acquire_reply(&mut self, now: Moment, id: ActionId, result: Result<Answer, BackendError>) {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Asking(attempt, asked) if asked.id == id => self.on_answer(now, attempt, asked, result),
            State::Held(held) if held.asked.as_ref().is_some_and(|asked| asked.id == id) => {
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
            Ok(Answer::Granted { lease, valid_for }) => {
                let grant = Grant { lease, basis: asked.at, valid_for };
                attempt.stale_answers += u32::from(grant.is_stale(now));
                self.on_grant(now, attempt, grant, None);
            }
            Ok(Answer::Queued { position, remaining, valid_for, holder }) => {
                attempt.place = Place::Queued;
                self.refuse_impatient(Some(&holder));
                let refresh = asked.at + valid_for / 3;
                let wake = self.queue_pace(&holder, remaining, position);
                let again_at = refresh.min(now + wake).max(now + pace::SOONEST);
                self.wait(attempt, holder, asked.again_at(now, again_at));
                self.believe(now, asked.hint);
            }
            Ok(Answer::Busy { remaining, holder }) => {
                attempt.place = Place::Outside;
                self.refuse_impatient(Some(&holder));
                let attempt = self.after_a_no(now, attempt);
                let poll = self.dice.spread(pace::poll(attempt.tries)).max(pace::SOONEST);
                let wake = remaining.map_or(poll, |remaining| poll.min(pace::after_expiry(remaining, 1)));
                self.wait(attempt, holder, asked.again_at(now, now + wake));
                self.believe(now, asked.hint);
            }
            Err(error) => self.on_ask_error(now, attempt, error),
        }
    }

    /// A grant that was told of before this no counts from it if it came after it, and is asked about if it may not have.
    fn believe(&mut self, now: Moment, hint: Hint) {
        match hint {
            Hint::Granted(pushed) => self.on_transfer(now, pushed.lease, pushed.valid_for),
            Hint::Nothing | Hint::MayBeFree => {}
        }
    }

    /// How long a place in the queue may be left alone.
    fn queue_pace(&mut self, holder: &Holder, remaining: Option<Duration>, position: u32) -> Duration {
        let told = self.policy.store.waiting == Waiting::QueueWithPush && *holder != Holder::Foreign;
        let quiet = if told { Duration::MAX } else { self.dice.jittered(pace::silent(position)) };
        remaining.map_or(quiet, |remaining| quiet.min(pace::after_expiry(remaining, position)))
    }

    fn wait(&mut self, mut attempt: Attempt, holder: Holder, again_at: Moment) {
        attempt.holder = Some(holder);
        attempt.stale_answers = 0;
        attempt.tries = attempt.tries.saturating_add(1);
        self.state = State::Waiting(attempt, again_at);
    }

    fn on_ask_error(&mut self, now: Moment, mut attempt: Attempt, error: BackendError) {
        let unsure = error.effect() == Effect::Unknown;
        let again = error.kind().is_transient() && self.line.queueing() == Queueing::Wanted;
        if again {
            self.fail_impatient(&error);
        } else {
            self.refuse_all(&error.clone().into());
        }
        if unsure {
            attempt.certainty = Certainty::Unknown;
        }
        // Where the store has a queue, asking again means the same as before, so the owner is kept and nothing is owed. Elsewhere
        // the claim is given up, and the next one has another owner.
        if again && self.policy.store.waiting != Waiting::Poll {
            return self.retry(now, attempt, error);
        }
        self.leave_queue(now, &attempt);
        if again {
            let next = self.with_next_owner(now, attempt);
            self.retry(now, next, error);
        }
    }

    pub(super) fn fail_impatient(&mut self, error: &BackendError) {
        for waiter in self.line.take_impatient() {
            self.outbox.push_back(super::refused(waiter.join.turn, error.clone().into()));
        }
    }

    /// The store kept nothing of a claim that it answered with no. So the next one is another attempt: what nodes of a
    /// quorum still do about this one cannot touch it.
    fn after_a_no(&mut self, now: Moment, attempt: Attempt) -> Attempt {
        match attempt.certainty {
            Certainty::Answered => self.with_next_owner(now, attempt),
            Certainty::Unknown => attempt,
        }
    }

    /// Goes on under an owner that the store has never heard of, at the same pace.
    fn with_next_owner(&mut self, now: Moment, attempt: Attempt) -> Attempt {
        let (owner, terms) = self.line.next_owner().unwrap_or((attempt.owner.successor(), attempt.terms));
        Attempt { tries: attempt.tries, holder: attempt.holder, ..Attempt::new(owner, terms, now) }
    }

    fn retry(&mut self, now: Moment, mut attempt: Attempt, error: BackendError) {
        let again_at = now + self.dice.jittered(pace::retry(attempt.tries));
        attempt.trouble = Some(error);
        attempt.tries = attempt.tries.saturating_add(1);
        self.state = State::Waiting(attempt, again_at);
    }

    /// A grant, by reply or by transfer: somebody is admitted, it is asked for again, or it is given back.
    fn on_grant(&mut self, now: Moment, attempt: Attempt, grant: Grant, asked: Option<Asked>) {
        let token = grant.lease.tokens.low();
        if !attempt.is_granted_by(&grant.lease, &self.name) {
            let message = "the store granted another lease than the one that was asked for";
            let error = BackendError::new("backend", Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, message);
            self.on_ask_error(now, attempt, error);
        } else if let Some(floor) = attempt.floor.filter(|floor| token <= *floor) {
            self.part(now, &attempt, attempt.certainty(asked.as_ref()));
            self.refuse_all(&AcquireError::Forgotten { name: self.name.clone(), token, floor });
        } else if self.line.first_with(grant.lease.terms).is_none() {
            self.part(now, &attempt, attempt.certainty(asked.as_ref()));
        } else if grant.is_stale(now) {
            self.on_stale_grant(now, attempt, grant, asked);
        } else {
            self.admit_first(now, grant, asked, attempt.certainty);
        }
    }

    /// It is asked for again. If those answers are stale too, whoever will not wait is sent away after the second one,
    /// and the lease is given back after the last.
    fn on_stale_grant(&mut self, now: Moment, mut attempt: Attempt, grant: Grant, asked: Option<Asked>) {
        attempt.place = Place::Queued;
        if let Some(mut asked) = asked {
            asked.was_granted(grant.lease, grant.valid_for);
            self.state = State::Asking(attempt, asked);
            return;
        }
        let error = too_slow(attempt.terms.ttl);
        if attempt.stale_answers > 1 {
            self.fail_impatient(&error);
        }
        if attempt.stale_answers < STALE_ANSWERS_MAX {
            self.state = State::Waiting(attempt, now + self.dice.jittered(pace::poll(0)));
        } else {
            self.part(now, &attempt, attempt.certainty);
            let attempt = self.with_next_owner(now, attempt);
            self.retry(now, attempt, error);
        }
    }

    pub(super) fn on_event(&mut self, now: Moment, event: Event) {
        match event {
            Event::Granted { lease, .. } if lease.name != self.name => {}
            Event::Freed { name } if name != self.name => {}
            Event::Granted { lease, valid_for } => self.on_transfer(now, lease, valid_for),
            Event::Freed { .. } | Event::RecheckAll => self.recheck(now),
        }
    }

    fn on_transfer(&mut self, now: Moment, lease: crate::Lease, valid_for: Duration) {
        let (attempt, asked) = match std::mem::replace(&mut self.state, State::Idle) {
            State::Asking(attempt, asked) if attempt.owner == lease.owner => (attempt, Some(asked)),
            State::Waiting(attempt, _) if attempt.owner == lease.owner => (attempt, None),
            // An owner that was issued here is the attempt's, or the hold's, or has been parted from: its pending frees
            // whatever it was handed. Any other belongs to another client of the same store, which wants its grant.
            other @ (State::Idle | State::Asking(..) | State::Waiting(..) | State::Held(_) | State::Closed) => {
                self.state = other;
                return;
            }
        };
        if attempt.is_ahead_of(&lease) {
            self.state = match asked {
                Some(mut asked) => {
                    asked.was_granted(lease, valid_for);
                    State::Asking(attempt, asked)
                }
                None => State::Waiting(attempt, now),
            };
            return;
        }
        let grant = Grant { lease, basis: attempt.basis, valid_for };
        self.on_grant(now, attempt, grant, asked);
    }
}

fn too_slow(ttl: Ttl) -> BackendError {
    let message = format!("the store answers too slowly for a ttl of {ttl}");
    BackendError::new("backend", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
        .with_remedy("use a longer ttl")
}
