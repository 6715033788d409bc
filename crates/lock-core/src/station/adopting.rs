//! Detaching and adopting: a turn ends and its lease stays at the store, for a turn of any client to continue with it.
//!
//! An adopted lease stands for itself. It is not passed on, no reader joins it, and what local waiters ask of the store continues
//! beside it, as if it were another client's.

use super::Station;
use super::attempt::{Attempt, Purpose};
use super::io::{Join, Output, TurnId};
use super::wait_queue::Waiter;
use crate::{Ability, Moment, Refusal, Ticket};

impl Station {
    /// A waiter wants to go on with the lease of a ticket. To adopt a lease is to replace it: the claim has a fresh owner, so that it
    /// is granted once, and the client that had the lease before can do nothing to the new one.
    pub(super) fn on_adopt(&mut self, now: Moment, join: Join, ticket: &Ticket) {
        if let Err(refusal) = self.check(&join).and_then(|()| Ok(self.policy.store.check_ability(Ability::Replace)?)) {
            return self.refuse([join.turn], &Refusal::Error(refusal));
        }
        let purpose = Purpose::Adopt { turn: join.turn, from: ticket.owner };
        let attempt = Attempt::new(self.owners.draw(), join.terms, purpose, now);
        self.attempts.push(Box::new(Attempt { floor: Some(ticket.fencing_token()), ..attempt }));
        self.adopters.get_or_insert_default().join(now, join);
    }

    /// A holder lets go of its lease, which stays as it is. Does nothing if others hold under it here.
    pub(super) fn on_detach(&mut self, id: TurnId) {
        let Some(held) = self.leases.iter().find(|held| held.has(id) && held.turns.len() == 1) else { return };
        let owner = held.lease.owner;
        if self.replacement_of(owner).is_some() {
            return;
        }
        let ended = self.leases.take(|held| held.lease.owner == owner).and_then(|mut held| held.take(id));
        ended.into_iter().for_each(|turn| turn.hold.give_up());
        // A claim that the hand-over overtook has done what it can.
        self.take_attempt(owner);
        self.outbox.extend([Output::Forget(owner), Output::Detached(id)]);
    }

    /// Whether there is an attempt for each adopter.
    pub(super) fn adopters_ask(&self) -> bool {
        let asks = |waiter: &Waiter| self.attempt_for(waiter.join.turn).is_some();
        self.adopters.iter().all(|queue| queue.iter().all(asks))
    }
}
