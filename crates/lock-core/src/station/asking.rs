//! Asking for the lease: claims, answers, and what the store tells meanwhile.

use std::time::Duration;

use super::Station;
use super::io::{ActionId, Request};
use super::quest::{Asked, Attempt, Grant, Hint, Place, Quest};
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
        let Some(terms) = self.line.terms() else { return };
        let attempt = Attempt::new(self.owners.draw(), terms, now);
        self.ask(now, attempt);
    }

    /// Asks again for the attempt that waits.
    pub(super) fn ask_again(&mut self, now: Moment) {
        if let Some(Quest::Waiting(mut attempt, _)) = self.quest.take() {
            if attempt.is_unknown_to_store() {
                attempt.basis = now;
            }
            self.ask(now, attempt);
        }
    }

    /// Has the next claim go out now; behind the one that is under way, if its answer is a no.
    fn recheck(&mut self, now: Moment) {
        match &mut self.quest {
            Some(Quest::Waiting(_, again_at)) => *again_at = now.min(*again_at),
            Some(Quest::Asking(_, asked)) => asked.may_be_free(),
            None => {}
        }
    }

    fn ask(&mut self, now: Moment, mut attempt: Attempt) {
        let Some(note) = self.line.front_with(attempt.terms).map(|waiter| waiter.join.note.clone()) else {
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
            width: attempt.granted.unwrap_or_else(|| self.line.width(attempt.terms, self.policy.chain)),
            floor: attempt.floor,
            note,
            queueing: self.line.queueing(),
            replaces: None,
        };
        self.last_asked = Some(attempt.owner);
        let within = self.policy.within(attempt.terms.ttl);
        let id = self.run(Request::Acquire(claim), within);
        self.quest = Some(Quest::Asking(attempt, Asked { id, at: now, hint: Hint::Nothing }));
    }

    pub(super) fn on_acquire_reply(&mut self, now: Moment, id: ActionId, result: Result<Answer, BackendError>) {
        if let Some((asked_at, replacement)) = self.take_replacement(id) {
            return self.on_replacement_answer(now, asked_at, replacement, result);
        }
        match self.quest.take() {
            Some(Quest::Asking(attempt, asked)) if asked.id == id => {
                self.on_answer(now, attempt, asked, result);
                self.refuse_exhausted(now);
            }
            other @ (Some(Quest::Asking(..) | Quest::Waiting(..)) | None) => self.quest = other,
        }
    }

    fn on_answer(&mut self, now: Moment, mut attempt: Attempt, asked: Asked, result: Result<Answer, BackendError>) {
        if self.tenure.as_ref().is_some_and(|tenure| tenure.lease.owner == attempt.owner) {
            return self.on_overtaken(now, asked.at, result);
        }
        if result.is_ok() {
            attempt.basis = asked.at;
            attempt.trouble = None;
        }
        match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) => {
                let grant = Grant { lease, basis: asked.at, valid_for, wanted };
                attempt.stale_answers += u32::from(grant.is_stale(now));
                self.on_grant(now, Quest::Waiting(attempt, now), grant);
            }
            Ok(Answer::Queued { position, remaining, valid_for, holder, drawn }) => {
                (attempt.place, attempt.drawn) = (Place::Queued, drawn);
                self.refuse_impatient(Some(&holder));
                let refresh = asked.at + valid_for / 3;
                let wake = self.queue_pace(&holder, remaining, position);
                let again_at = refresh.min(now + wake).max(now + pace::SOONEST);
                self.wait(attempt, holder, asked.again_at(now, again_at));
                self.believe(now, asked.hint);
            }
            Ok(Answer::Busy { remaining, holder, drawn }) => {
                (attempt.place, attempt.drawn) = (Place::Outside, drawn);
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
            Hint::Granted(pushed) => self.on_transfer(now, *pushed),
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
        self.quest = Some(Quest::Waiting(attempt, again_at));
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
        let (owner, terms) = (self.owners.draw(), self.line.terms().unwrap_or(attempt.terms));
        let Attempt { tries, holder, drawn, .. } = attempt;
        Attempt { tries, holder, drawn, ..Attempt::new(owner, terms, now) }
    }

    fn retry(&mut self, now: Moment, mut attempt: Attempt, error: BackendError) {
        let again_at = now + self.dice.jittered(pace::retry(attempt.tries));
        attempt.trouble = Some(error);
        attempt.tries = attempt.tries.saturating_add(1);
        self.quest = Some(Quest::Waiting(attempt, again_at));
    }

    /// A grant, by reply or by transfer: somebody is admitted, it is asked for again, or it is given back.
    fn on_grant(&mut self, now: Moment, quest: Quest, grant: Grant) {
        let (token, attempt) = (grant.lease.tokens.low(), quest.attempt());
        if !attempt.is_granted_by(&grant.lease, &self.name) {
            let message = "the store granted another lease than the one that was asked for";
            let error = BackendError::new("backend", Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, message);
            self.on_ask_error(now, quest.into_attempt(), error);
        } else if let Some(floor) = attempt.floor.filter(|floor| token <= *floor) {
            self.part(now, attempt, quest.certainty());
            self.refuse_all(&AcquireError::Forgotten { name: self.name.clone(), token, floor });
        } else if self.line.front_with(grant.lease.terms).is_none() {
            self.part(now, attempt, quest.certainty());
        } else if grant.is_stale(now) {
            self.on_stale_grant(now, quest, grant);
        } else {
            self.admit_first(now, grant, attempt.certainty);
            // Its answer is still to come, and says how the lease stands.
            self.quest = Some(quest).filter(|quest| matches!(quest, Quest::Asking(..)));
        }
    }

    /// It is asked for again. If those answers are stale too, a waiter that will not wait is rejected after the second one,
    /// and the lease is given back after the last.
    fn on_stale_grant(&mut self, now: Moment, quest: Quest, grant: Grant) {
        let mut attempt = match quest {
            Quest::Waiting(attempt, _) => attempt,
            Quest::Asking(mut attempt, mut asked) => {
                attempt.place = Place::Queued;
                asked.was_granted(grant);
                self.quest = Some(Quest::Asking(attempt, asked));
                return;
            }
        };
        (attempt.place, attempt.granted) = (Place::Queued, Some(grant.lease.tokens.width()));
        let error = too_slow(attempt.terms.ttl);
        if attempt.stale_answers > 1 {
            self.fail_impatient(&error);
        }
        if attempt.stale_answers < STALE_ANSWERS_MAX {
            let again_at = now + self.dice.jittered(pace::poll(0));
            self.quest = Some(Quest::Waiting(attempt, again_at));
        } else {
            self.part(now, &attempt, attempt.certainty);
            let attempt = self.with_next_owner(now, attempt);
            self.retry(now, attempt, error);
        }
    }

    pub(super) fn on_event(&mut self, now: Moment, event: Event) {
        match event {
            Event::Granted { lease, .. } if lease.name != self.name => {}
            Event::Freed { name } | Event::Wanted { name } if name != self.name => {}
            Event::Granted { lease, valid_for, wanted } => {
                self.on_transfer(now, Grant { lease, basis: now, valid_for, wanted });
            }
            Event::Wanted { .. } => self.on_wanted(now),
            Event::Freed { .. } | Event::RecheckAll => self.recheck(now),
        }
    }

    /// The store told of a grant unasked. What it counts from follows from the quest.
    fn on_transfer(&mut self, now: Moment, pushed: Grant) {
        // An owner that was drawn here is the quest's, or the tenure's, or has been given up: its release frees whatever it was
        // handed. Any other belongs to another client of the same store, which wants its grant.
        if self.tenure.is_some() {
            return;
        }
        let Some(mut quest) = self.take_quest_of(pushed.lease.owner) else { return };
        if quest.attempt().is_ahead_of(&pushed.lease) {
            match &mut quest {
                Quest::Asking(_, asked) => asked.was_granted(pushed),
                Quest::Waiting(_, again_at) => *again_at = now,
            }
            self.quest = Some(quest);
            return;
        }
        let grant = Grant { basis: quest.attempt().basis, ..pushed };
        self.on_grant(now, quest, grant);
    }
}

fn too_slow(ttl: Ttl) -> BackendError {
    let message = format!("the store answers too slowly for a ttl of {ttl}");
    BackendError::new("backend", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
        .with_remedy("use a longer ttl")
}
