//! Asking for a lease: claims, answers, and what the store reports meanwhile.

use std::time::Duration;

use super::Station;
use super::attempt::{Attempt, Grant, Hint, LeaseUse, Place, Purpose};
use super::io::{ActionId, ForWhom, Output, Request};
use super::progress::Progress;
use super::waiter::Waiter;
use crate::policy::pace;
use crate::{
    AcquireError, Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Fairness, Holder, Moment, Note, Operation,
    Owner, Queueing, StoreEvent, Waiting, Width,
};

impl Station {
    /// Begins an attempt for the front waiter, unless there is one.
    pub(super) fn ask_first(&mut self, now: Moment) {
        if self.front_attempt().is_some() || self.is_held_back() {
            return;
        }
        if let Some(terms) = self.waiters.terms() {
            let attempt = Attempt::new(self.owners.draw(), terms, Purpose::Front, now);
            self.ask(now, Box::new(attempt));
        }
    }

    /// The attempt for the front waiter.
    pub(super) fn front_attempt(&self) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| matches!(attempt.purpose, Purpose::Front))
    }

    /// How many attempts for waiters the store may know, for leases that would be used like this. Each may end in a release.
    pub(super) fn known_attempts(&self, usage: LeaseUse) -> usize {
        let is_known = |attempt: &&Attempt| attempt.is_for_waiter() && !attempt.is_unknown_to_store();
        self.attempts.iter().filter(is_known).filter(|attempt| attempt.usage() == usage).count()
    }

    pub(super) fn take_attempt(&mut self, owner: Owner) -> Option<Box<Attempt>> {
        self.attempts.take(|attempt| attempt.owner == owner)
    }

    /// Sends the claims that are due, those of earlier waiters first.
    pub(super) fn ask_due(&mut self, now: Moment) {
        while let Some(owner) = self.next_due(now) {
            self.take_attempt(owner).into_iter().for_each(|attempt| self.ask(now, attempt));
        }
    }

    fn next_due(&self, now: Moment) -> Option<Owner> {
        let due = self.attempts.iter().filter(|attempt| self.ask_at(attempt).is_some_and(|at| at <= now));
        due.min_by_key(|attempt| attempt.turn()).map(|attempt| attempt.owner)
    }

    /// When the next claim of an attempt goes out, unless something has to be answered first.
    pub(super) fn ask_at(&self, attempt: &Attempt) -> Option<Moment> {
        let due = attempt.progress.due()?;
        let has_to_wait = match &attempt.purpose {
            Purpose::Replace(replace) => !self.may_replace(replace.old),
            Purpose::Front | Purpose::Waiter(_) | Purpose::Adopt { .. } => self.has_to_wait(attempt),
            Purpose::Nothing(_) => true,
        };
        (!has_to_wait).then_some(due)
    }

    /// Sends the next claim of an attempt.
    pub(super) fn ask(&mut self, now: Moment, mut attempt: Box<Attempt>) {
        let Some((note, fairness, for_whom)) = self.asks_for(&attempt) else { return self.leave_queue(now, &attempt) };
        if attempt.is_unknown_to_store() {
            (attempt.counted_from, attempt.floor) = (now, attempt.floor.max(self.floor.get()));
        }
        let may_queue = attempt.may_queue() && self.is_waited_for(&attempt);
        let claim = Claim {
            name: self.name.clone(),
            owner: attempt.owner,
            terms: attempt.terms,
            width: attempt.granted.unwrap_or_else(|| self.width(&attempt)),
            floor: attempt.floor,
            note,
            queueing: if may_queue { Queueing::Wanted } else { Queueing::Unwanted },
            replaces: attempt.replaces(),
            fairness,
            kind: self.kind,
        };
        if attempt.may_queue() {
            self.last_asked = Some(attempt.owner);
        }
        (attempt.fairness, attempt.hint) = (fairness, Hint::Nothing);
        attempt.progress = self.run(now, Request::Acquire(claim), attempt.terms, for_whom);
        self.attempts.push(attempt);
    }

    /// The note and the fairness of an attempt's claims, and who waits for their answers. `None` if nobody wants it any more.
    fn asks_for(&self, attempt: &Attempt) -> Option<(Note, Fairness, ForWhom)> {
        if let Purpose::Replace(replace) = &attempt.purpose {
            let (turn, holder) = self.lease_of(replace.old)?.turns.first()?;
            return Some((holder.note.clone(), Fairness::Fair, ForWhom::Turn(turn)));
        }
        let join = &self.waiter_of(attempt)?.join;
        let fairness = if attempt.may_queue() { join.fairness } else { Fairness::Fair };
        Some((join.note.clone(), fairness, attempt.turn().map_or(ForWhom::AnyWaiter, ForWhom::Turn)))
    }

    /// The waiter that the attempt is for.
    pub(super) fn waiter_of(&self, attempt: &Attempt) -> Option<&Waiter> {
        match attempt.purpose {
            Purpose::Front => self.waiters.front_with(attempt.terms),
            Purpose::Waiter(turn) => self.waiters.get(turn),
            Purpose::Adopt { turn, .. } => self.adopters.as_ref()?.get(turn),
            Purpose::Replace(_) | Purpose::Nothing(_) => None,
        }
    }

    /// Whether a waiter that the attempt is for waits for more than one answer.
    fn is_waited_for(&self, attempt: &Attempt) -> bool {
        let queueing = match attempt.turn() {
            None => self.waiters.queueing(),
            Some(_) => self.waiter_of(attempt).map_or(Queueing::Unwanted, Waiter::queueing),
        };
        queueing == Queueing::Wanted
    }

    /// How many tokens to ask for.
    fn width(&self, attempt: &Attempt) -> Width {
        match attempt.purpose {
            Purpose::Front => self.waiters.width(attempt.terms, self.policy.chain),
            Purpose::Waiter(_) | Purpose::Adopt { .. } | Purpose::Replace(_) | Purpose::Nothing(_) => {
                attempt.terms.mode.width()
            }
        }
    }

    pub(super) fn on_acquire_reply(&mut self, now: Moment, id: ActionId, result: Result<Answer, BackendError>) {
        self.found(now, &result);
        if result.is_ok() {
            self.failing_since = None;
        }
        let Some(attempt) = self.attempts.take(|attempt| attempt.progress.asked_at(id).is_some()) else { return };
        let Some(asked_at) = attempt.progress.asked_at(id) else { return };
        match attempt.purpose {
            Purpose::Replace(_) => self.on_replacement_answer(now, asked_at, attempt, result),
            Purpose::Nothing(_) => self.on_late_answer(now, *attempt, &result),
            Purpose::Front | Purpose::Waiter(_) | Purpose::Adopt { .. } => {
                let turn = attempt.turn();
                self.on_answer(now, asked_at, attempt, result);
                self.refuse_exhausted(now, turn);
            }
        }
    }

    fn on_answer(
        &mut self,
        now: Moment,
        asked_at: Moment,
        mut attempt: Box<Attempt>,
        result: Result<Answer, BackendError>,
    ) {
        if self.held_of(attempt.owner).is_some() {
            return self.on_overtaken(now, asked_at, attempt.owner, result);
        }
        attempt.progress = Progress::Due(now);
        if result.is_ok() {
            (attempt.counted_from, attempt.last_error) = (asked_at, None);
        }
        match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) => {
                let grant = Grant { lease, counted_from: asked_at, valid_for, wanted };
                attempt.stale_answers += u32::from(grant.is_stale(now));
                self.on_grant(now, attempt, grant);
            }
            Ok(_) if !attempt.may_queue() => self.on_ask_error(now, attempt, self.not_asked_for()),
            Ok(Answer::Queued { position, remaining, valid_for, holder, drawn }) => {
                let wake = self.queue_pace(&holder, remaining, position);
                let again_at = (asked_at + valid_for / 3).min(now + wake).max(now + pace::SOONEST);
                attempt.answered(Place::Queued, holder, drawn);
                self.refuse_answered(&attempt);
                self.wait(now, attempt, again_at);
            }
            Ok(Answer::Busy { remaining, holder, drawn }) => {
                attempt.answered(Place::Outside, holder, drawn);
                self.refuse_answered(&attempt);
                let poll = self.dice.spread(pace::poll(attempt.tries)).max(pace::SOONEST);
                let wake = remaining.map_or(poll, |remaining| poll.min(pace::after_expiry(remaining, 1)));
                // The store kept nothing of the claim. The next one has another owner, so leftovers of this one at the
                // nodes of a quorum cannot affect it.
                if attempt.certainty == Certainty::Answered {
                    attempt = self.with_next_owner(now, *attempt);
                }
                self.wait(now, attempt, now + wake);
            }
            Err(error) if error.kind() == ErrorKind::OtherKind => {
                self.on_ask_error(now, attempt, error.with_name(&self.name));
            }
            Err(error) => self.on_ask_error(now, attempt, error),
        }
    }

    /// The store answered with something that was not asked for.
    pub(super) fn not_asked_for(&self) -> BackendError {
        let message = "the store granted another lease than the one that was asked for";
        let (backend, kind) = (self.policy.store.backend, ErrorKind::Protocol);
        BackendError::new(backend, Operation::Acquire, kind, Effect::Unknown, message)
    }

    /// How long until a queued waiter asks again, if nothing is heard from the store.
    fn queue_pace(&mut self, holder: &Holder, remaining: Option<Duration>, position: u32) -> Duration {
        let told = self.policy.store.waiting == Waiting::QueueWithPush && *holder != Holder::Foreign;
        let quiet = if told { Duration::MAX } else { self.dice.jittered(pace::silent(position)) };
        remaining.map_or(quiet, |remaining| quiet.min(pace::after_expiry(remaining, position)))
    }

    /// Waits after a negative answer. A report of the store may be newer, so the next claim goes out soon, and a later grant counts.
    fn wait(&mut self, now: Moment, mut attempt: Box<Attempt>, again_at: Moment) {
        let hint = std::mem::replace(&mut attempt.hint, Hint::Nothing);
        let again_at = match hint {
            Hint::Nothing => again_at,
            Hint::MayBeFree | Hint::Granted(_) => again_at.min(now + pace::SOONEST),
        };
        attempt.progress = Progress::Due(again_at);
        attempt.stale_answers = 0;
        attempt.tries = attempt.tries.saturating_add(1);
        self.attempts.push(attempt);
        if let Hint::Granted(pushed) = hint {
            self.on_transfer(now, *pushed);
        }
    }

    /// A claim failed: it is repeated later, or the waiters that it is for are rejected.
    pub(super) fn on_ask_error(&mut self, now: Moment, mut attempt: Box<Attempt>, error: BackendError) {
        let (turn, adopts) = (attempt.turn(), attempt.adopts());
        if error.kind().is_transient() {
            self.fail_impatient(now, &attempt, &error);
        }
        let again = error.kind().is_transient() && self.is_waited_for(&attempt);
        if adopts && error.kind() == ErrorKind::NotHeld {
            self.refuse_served(turn, AcquireError::TicketOver { name: self.name.clone() });
        } else if !again {
            self.refuse_served(turn, error.clone().into());
        }
        if error.effect() == Effect::Unknown {
            attempt.certainty = Certainty::Unknown;
        }
        // Where the store has a queue, or the lease of a ticket is replaced, asking again means the same as before, so the owner
        // is kept and nothing is owed. Elsewhere the claim is given up, and the next one has another owner.
        if again && (adopts || self.policy.store.waiting != Waiting::Poll) {
            return self.retry(now, attempt, error);
        }
        self.leave_queue(now, &attempt);
        if again {
            let next = self.with_next_owner(now, *attempt);
            self.retry(now, next, error);
        }
    }

    /// Continues under an owner that the store has never seen, at the same pace.
    pub(super) fn with_next_owner(&mut self, now: Moment, attempt: Attempt) -> Box<Attempt> {
        let Attempt { terms, purpose, fairness, tries, hint, holder, drawn, .. } = attempt;
        let first = self.waiters.terms().filter(|_| matches!(purpose, Purpose::Front));
        let next = Attempt::new(self.owners.draw(), first.unwrap_or(terms), purpose, now);
        Box::new(Attempt { fairness, tries, hint, holder, drawn, ..next })
    }

    pub(super) fn retry(&mut self, now: Moment, mut attempt: Box<Attempt>, error: BackendError) {
        self.pause(now, &mut attempt);
        attempt.last_error = Some(error);
        self.attempts.push(attempt);
    }

    /// The next claim goes out after a pause, which is longer each time.
    pub(super) fn pause(&mut self, now: Moment, attempt: &mut Attempt) {
        attempt.progress = Progress::Due(now + self.dice.jittered(pace::retry(attempt.tries)));
        attempt.tries = attempt.tries.saturating_add(1);
    }

    pub(super) fn on_event(&mut self, now: Moment, event: StoreEvent) {
        match event {
            StoreEvent::Granted { lease, .. } if lease.name != self.name => {}
            StoreEvent::Freed { name } | StoreEvent::Wanted { name } | StoreEvent::Revoked { name }
                if name != self.name => {}
            StoreEvent::Granted { lease, valid_for, wanted } => {
                self.on_transfer(now, Grant { lease, counted_from: now, valid_for, wanted });
            }
            StoreEvent::Wanted { .. } => self.on_wanted(now),
            StoreEvent::Revoked { .. } | StoreEvent::RecheckHolds => self.on_revoked(),
            StoreEvent::LatchChanged { .. } => {}
            StoreEvent::SessionEnded => self.on_session_ended(now),
            StoreEvent::Freed { .. } | StoreEvent::RecheckAll => self.may_all_be_free(now),
        }
    }

    /// Somebody elsewhere began to wait.
    fn on_wanted(&mut self, now: Moment) {
        self.leases.iter_mut().for_each(|held| held.update_wanted(now, true));
    }

    /// Whether it was a lease of ours is said by its renewal, and by whom it was revoked.
    fn on_revoked(&mut self) {
        self.outbox.extend(self.leases.iter().map(|held| Output::RenewNow(held.lease.owner)));
    }
}
