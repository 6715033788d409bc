//! A reader that joins or leaves a shared lease beside others, when nothing else is going on.
//!
//! This decides nothing that [`Station::handle_input`] would not. It only saves the way through the line and the outputs, for
//! what a client with many readers does most.

use std::sync::Arc;

use super::Station;
use super::io::TurnId;
use super::tenure::Tenure;
use crate::{Hold, Moment, Note};

impl Station {
    /// Processes the join of a reader without `max_hold` whose wait is not over, if its only output is that it is admitted,
    /// under this hold. `None`, and nothing has changed, if it is for [`handle_input`](Self::handle_input).
    pub fn join_at_once(&mut self, now: Moment, turn: TurnId, note: &Note) -> Option<Arc<Hold>> {
        if !self.only_reads(now) {
            return None;
        }
        let tenure = self.tenures.first_mut()?;
        tenure.wanted_for(now, now).filter(|wanted| !wanted)?;
        self.last_now = now;
        Some(tenure.begin(now, turn, tenure.lease.tokens.low(), note.clone(), None))
    }

    /// Processes the leaving of a reader beside others, at the moment of the last input. Its only output is that the turn has
    /// ended, by [`Released::Released`]. The caller can compare the hold with its clock. False, and nothing has changed, if
    /// it is for [`handle_input`](Self::handle_input).
    ///
    /// [`Released::Released`]: crate::Released::Released
    pub fn leave_at_once(&mut self, turn: TurnId) -> bool {
        let others_stay = |tenure: &&mut Tenure| tenure.turns.len() > 1;
        let ended = self.tenures.first_mut().filter(others_stay).and_then(|tenure| tenure.take(turn));
        ended.inspect(|ended| ended.hold.give_up()).is_some()
    }

    /// Whether there are readers under one lease and nothing else, and nothing is due.
    fn only_reads(&self, now: Moment) -> bool {
        let is_quiet = self.last_now <= now && !self.closed;
        let Some(tenure) = self.tenures.first().filter(|_| self.tenures.len() == 1) else { return false };
        is_quiet
            && tenure.is_shared()
            && !tenure.adopted
            && tenure.replacement.is_none()
            && now < tenure.turns_until()
            && self.line.is_empty()
            && self.quests.is_empty()
            && self.adoptions.is_empty()
            && self.pending_releases.0.is_empty()
    }
}
