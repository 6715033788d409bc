//! A reader that joins or leaves a shared lease beside others, when nothing else is going on.
//!
//! This decides nothing that [`Station::handle_input`] would not. It only saves the way through the line and the outputs, for
//! what a client with many readers does most.

use std::sync::Arc;

use super::Station;
use super::attempt::LeaseUse;
use super::held::HeldLease;
use super::io::TurnId;
use crate::{Hold, Moment, Note};

impl Station {
    /// Processes the join of a reader without `max_hold` whose wait is not over, if its only output is that it is admitted,
    /// under this hold. `None`, and nothing has changed, if it is for [`handle_input`](Self::handle_input).
    pub fn join_at_once(&mut self, now: Moment, turn: TurnId, note: &Note) -> Option<Arc<Hold>> {
        if !self.only_reads(now) {
            return None;
        }
        let held = self.leases.first_mut()?;
        held.wanted_for(now, now).filter(|wanted| !wanted)?;
        self.last_now = now;
        Some(held.begin(now, turn, held.lease.tokens.low(), note.clone(), None))
    }

    /// Processes the leaving of a reader beside others, at the moment of the last input. Its only output is that the turn has
    /// ended, by [`Released::Released`]. The caller can compare the hold with its clock. False, and nothing has changed, if
    /// it is for [`handle_input`](Self::handle_input).
    ///
    /// [`Released::Released`]: crate::Released::Released
    pub fn leave_at_once(&mut self, turn: TurnId) -> bool {
        let others_stay = |held: &&mut HeldLease| held.turns.len() > 1;
        let ended = self.leases.first_mut().filter(others_stay).and_then(|held| held.take(turn));
        ended.inspect(|ended| ended.hold.give_up()).is_some()
    }

    /// Whether there are readers under one lease and nothing else, and nothing is due.
    fn only_reads(&self, now: Moment) -> bool {
        let is_quiet = self.last_now <= now && !self.closed;
        let Some(held) = self.leases.first().filter(|_| self.leases.len() == 1) else { return false };
        is_quiet
            && held.is_shared()
            && held.usage == LeaseUse::PassedOn
            && now < held.turns_until()
            && self.waiters.is_empty()
            && self.attempts.is_empty()
            && self.releases.0.is_empty()
    }
}
