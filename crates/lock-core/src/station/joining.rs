//! Joining: a local waiter begins to wait, or gives up.

use super::Station;
use super::attempt::{Attempt, Place, Purpose};
use super::held_lease::HeldLease;
use super::io::{Join, TurnId};
use super::waiter::Waiter;
use crate::{Ability, AcquireError, Fairness, Moment, NameKind, Patience, Refusal};

impl Station {
    pub(super) fn on_join(&mut self, now: Moment, join: Join) {
        if let Err(error) = self.check(&join) {
            return self.refuse([Waiter::new(now, join)], &Refusal::Error(error));
        }
        // This waiter accepts the first answer, so the station asks now instead of relying on an old one. If a claim is in
        // flight already, its answer counts. A waiter that asks for itself must not wait for those that have no place yet. Beside
        // a shared lease, the answer does not come from those attempts.
        if join.patience == Patience::Never && !self.common().is_some_and(HeldLease::is_shared) {
            let before = |attempt: &&mut Attempt| match attempt.purpose {
                Purpose::Front => true,
                Purpose::Waiter(_) => attempt.place == Place::Outside,
                Purpose::Adopt { .. } | Purpose::Replace(_) | Purpose::Nothing(_) => false,
            };
            self.attempts.iter_mut().filter(before).for_each(|attempt| attempt.ask_now(now));
        }
        self.waiters.join(now, self.reported(join));
        self.found_held(now);
        if self.is_held_back() {
            self.repeat_release_now(now);
        }
    }

    /// Whether a waiter can be served at all.
    pub(super) fn check(&self, join: &Join) -> Result<(), AcquireError> {
        let mode = join.terms.mode;
        let is_semaphore = self.kind == NameKind::Semaphore;
        debug_assert_eq!(mode.limit().is_some(), is_semaphore, "another kind has another station");
        if self.closed {
            return Err(AcquireError::Closed);
        }
        self.policy.store.check_mode(mode)?;
        match join.fairness {
            Fairness::Fair => Ok(()),
            Fairness::Barging => Ok(self.policy.store.check_ability(Ability::Barge)?),
        }
    }

    pub(super) fn on_cancel(&mut self, turn: TurnId) {
        let waiter = self.take_waiter(turn);
        self.refuse(waiter, &Refusal::Error(AcquireError::Cancelled));
    }
}
