//! Detaching and adopting: a turn ends and its lease stays at the store, for a turn of any client to go on with it.
//!
//! To adopt a lease is to replace it: the claim has a fresh owner, so that it is granted once, and the client that had the lease before
//! can do nothing to the new one. An adopted lease stands for itself. It is not passed on, no reader joins it, and what local
//! waiters ask of the store goes on beside it, as if it were another client's.

use super::Station;
use super::adoption::Adoption;
use super::grants::too_slow;
use super::io::{ActionId, Join, Output, Request, TurnId};
use super::pending::Of;
use super::progress::Progress;
use super::quest::Grant;
use super::refusing::away;
use super::tenure::Tenure;
use crate::policy::pace;
use crate::{
    Ability, AcquireError, Answer, BackendError, Certainty, Effect, ErrorKind, Evidence, Moment, Operation, Refusal,
    ReleaseRequest, Ticket,
};

impl Station {
    /// A holder lets go of its lease, which stays as it is. Does nothing if others hold under it here.
    pub(super) fn on_detach(&mut self, id: TurnId) {
        let is_free = |tenure: &Tenure| tenure.has(id) && tenure.turns.len() == 1 && tenure.replacement.is_none();
        let Some(mut tenure) = self.tenures.take(is_free) else { return };
        let Some(turn) = tenure.take(id) else { return };
        turn.hold.give_up();
        // A claim that the hand-over overtook has done what it can.
        self.take_quest_of(tenure.lease.owner);
        self.outbox.extend([Output::Forget(tenure.lease.owner), Output::Detached(id)]);
    }

    /// A waiter wants to go on with the lease of a ticket.
    pub(super) fn on_adopt(&mut self, now: Moment, join: Join, ticket: &Ticket) {
        if self.closed {
            return self.refuse([join.turn], &Refusal::Error(AcquireError::Closed));
        }
        let (store, mode) = (&self.policy.store, join.terms.mode);
        debug_assert_eq!(mode.name_kind(), self.kind, "another kind has another station");
        if let Err(error) = store.check_ability(Ability::Replace).and_then(|()| store.check_mode(mode)) {
            return self.refuse([join.turn], &Refusal::Error(error.into()));
        }
        let owner = self.owners.draw();
        self.adoptions.push(Box::new(Adoption::new(now, join, owner, ticket)));
    }

    /// When its next claim is to go out, unless releases have to be answered first.
    pub(super) fn adoption_due(&self, adoption: &Adoption) -> Option<Moment> {
        adoption.progress.due().filter(|_| self.may_adopt(adoption))
    }

    /// Sends the claims that are due.
    pub(super) fn ask_adoptions(&mut self, now: Moment) {
        while let Some(turn) = self.next_adoption_due(now) {
            self.take_adoption(turn).into_iter().for_each(|adoption| self.ask_adoption(now, adoption));
        }
    }

    fn next_adoption_due(&self, now: Moment) -> Option<TurnId> {
        let is_due = |adoption: &Adoption| self.adoption_due(adoption).is_some_and(|due| due <= now);
        self.adoptions.iter().find(|adoption| is_due(adoption)).map(|adoption| adoption.join.turn)
    }

    fn take_adoption(&mut self, turn: TurnId) -> Option<Box<Adoption>> {
        self.adoptions.take(|adoption| adoption.join.turn == turn)
    }

    fn ask_adoption(&mut self, now: Moment, mut adoption: Box<Adoption>) {
        if !adoption.is_known_to_store() {
            adoption.floor = adoption.floor.max(self.floor.get().unwrap_or(adoption.floor));
        }
        adoption.tries = adoption.tries.saturating_add(1);
        adoption.progress = self.run(now, Request::Acquire(adoption.claim(&self.name)), adoption.terms());
        self.adoptions.push(adoption);
    }

    /// The adoption that this action was for, and when it was handed out.
    pub(super) fn take_adopting(&mut self, id: ActionId) -> Option<(Moment, Box<Adoption>)> {
        let adoption = self.adoptions.take(|adoption| adoption.is_under_way_as(id))?;
        Some((adoption.progress.asked_at(id)?, adoption))
    }

    pub(super) fn on_adoption_answer(
        &mut self,
        now: Moment,
        asked_at: Moment,
        mut adoption: Box<Adoption>,
        result: Result<Answer, BackendError>,
    ) {
        adoption.progress = Progress::Due(now);
        match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) if adoption.is_granted_by(&lease, &self.name) => {
                self.on_adopted(now, adoption, Grant { lease, basis: asked_at, valid_for, wanted });
            }
            Ok(_) => self.on_adoption_error(now, adoption, self.not_an_adoption()),
            Err(error) => self.on_adoption_error(now, adoption, error),
        }
    }

    /// The store has replaced the lease: the waiter has its turn, if it comes in time.
    fn on_adopted(&mut self, now: Moment, mut adoption: Box<Adoption>, grant: Grant) {
        let token = grant.lease.tokens.low();
        if token <= adoption.floor {
            adoption.is_unknown();
            let (name, floor) = (self.name.clone(), adoption.floor);
            return self.refuse_adoption(now, &adoption, AcquireError::Forgotten { name, token, floor });
        }
        if self.is_outlived(&grant.lease) {
            adoption.is_unknown();
            let name = self.name.clone();
            return self.refuse_adoption(now, &adoption, AcquireError::TicketOver { name });
        }
        if grant.is_stale(now) {
            let error = too_slow(adoption.terms().ttl);
            return self.on_adoption_error(now, adoption, error);
        }
        self.lose_excluded(now, &grant.lease);
        let mut tenure = self.keep(now, grant, adoption.certainty());
        tenure.adopted = true;
        self.floor.raise_to(tenure.lease.tokens.high());
        self.admit(now, &mut tenure, adoption.join, token);
        self.tenures.push(tenure);
    }

    /// Asks again later, or rejects the waiter: for good if the store has said that there is nothing to adopt.
    fn on_adoption_error(&mut self, now: Moment, mut adoption: Box<Adoption>, error: BackendError) {
        if error.effect() == Effect::Unknown {
            adoption.is_unknown();
        }
        if error.kind() == ErrorKind::NotHeld {
            let name = self.name.clone();
            return self.refuse_adoption(now, &adoption, AcquireError::TicketOver { name });
        }
        if !error.kind().is_transient() || adoption.is_exhausted() {
            return self.refuse_adoption(now, &adoption, error.into());
        }
        let failing_since = *self.failing_since.get_or_insert(now);
        if adoption.join.gives_up_after(now.since(failing_since.max(adoption.since)), &self.policy) {
            return self.refuse_adoption(now, &adoption, away(&error).into());
        }
        let pause = self.dice.jittered(pace::retry(adoption.tries.saturating_sub(1)));
        (adoption.progress, adoption.trouble) = (Progress::Due(now + pause), Some(error));
        self.adoptions.push(adoption);
    }

    /// Rejects the waiters whose wait is over.
    pub(super) fn refuse_overdue_adoptions(&mut self, now: Moment) {
        while let Some(adoption) = self.adoptions.take(|adoption| adoption.is_overdue(now)) {
            let error = adoption.trouble.clone().unwrap_or_else(|| self.no_answer(now.since(adoption.since)));
            self.refuse_adoption(now, &adoption, error.into());
        }
    }

    /// A waiter gives up.
    pub(super) fn leave_adoption(&mut self, now: Moment, turn: TurnId) {
        self.take_adoption(turn).into_iter().for_each(|adoption| self.part_from(now, &adoption));
    }

    /// A waiter is told to give up.
    pub(super) fn cancel_adoption(&mut self, now: Moment, turn: TurnId) {
        let adoption = self.take_adoption(turn);
        adoption.into_iter().for_each(|adoption| self.refuse_adoption(now, &adoption, AcquireError::Cancelled));
    }

    /// Rejects all of these waiters.
    pub(super) fn close_adoptions(&mut self, now: Moment) {
        while let Some(adoption) = self.adoptions.take(|_| true) {
            self.refuse_adoption(now, &adoption, AcquireError::Closed);
        }
    }

    fn refuse_adoption(&mut self, now: Moment, adoption: &Adoption, error: AcquireError) {
        self.refuse([adoption.join.turn], &Refusal::Error(error));
        self.part_from(now, adoption);
    }

    /// Has the store release the new lease, if it may have granted it.
    fn part_from(&mut self, now: Moment, adoption: &Adoption) {
        let (name, owner, terms, certainty) =
            (self.name.clone(), adoption.owner, adoption.terms(), adoption.certainty());
        if certainty == Certainty::Unknown {
            let evidence = Evidence::Nothing;
            self.release(
                now,
                ReleaseRequest { name, owner, terms, certainty, keep: None, evidence },
                Of::Adopted,
                None,
            );
        }
    }

    fn not_an_adoption(&self) -> BackendError {
        let (backend, message) = (self.policy.store.backend, "the store granted another lease than the ticket's");
        BackendError::new(backend, Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, message)
    }
}
