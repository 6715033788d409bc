//! Stores that keep entries until a session ends: when the session has to end, and what follows.

use super::Station;
use super::attempt::{Attempt, Hint, Purpose};
use crate::{EntriesEnd, LossReason, Moment};

impl Station {
    /// Whether the store's entries end with a session.
    pub(super) fn has_session(&self) -> bool {
        self.policy.store.entries_end == EntriesEnd::WithSession
    }

    /// Whether a release has been pending for so long that the session has to end.
    #[must_use]
    pub fn must_end_session(&self, now: Moment) -> bool {
        self.has_session() && self.releases.are_late(now)
    }

    /// Everything that the store kept for this client has ended, or will end without a request.
    pub(super) fn on_session_ended(&mut self, now: Moment) {
        while let Some(pending) = self.releases.take_any() {
            match pending.turn {
                Some(turn) => self.passed_on(turn, pending.ended),
                None => self.report_given_up(&pending),
            }
        }
        self.lose_all(now, &LossReason::NotHeld);
        let are_wanted = |attempt: &Attempt| !attempt.is_given_up();
        let wanted: Vec<_> = std::iter::from_fn(|| self.attempts.take(are_wanted)).collect();
        wanted.into_iter().for_each(|attempt| self.ask_in_next_session(now, *attempt));
    }

    /// Continues under a new owner, which has no entry in an earlier session. An answer to the claim that is in flight says nothing
    /// about the next session; what may be left of it is released then.
    fn ask_in_next_session(&mut self, now: Moment, attempt: Attempt) {
        let Attempt { owner, terms, progress, floor, .. } = attempt;
        let in_flight = Attempt { progress, ..Attempt::new(owner, terms, Purpose::Nothing(attempt.usage()), now) };
        let next = self.with_next_owner(now, Attempt { hint: Hint::Nothing, ..attempt });
        self.attempts.push(Box::new(Attempt { floor, ..*next }));
        if progress.in_flight().is_some() {
            self.attempts.push(Box::new(in_flight));
        }
    }
}
