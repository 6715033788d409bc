//! Readers that join and leave beside others: without the way through inputs and outputs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_core::station::{Station, TurnId};
use lock_core::{Hold, Moment, Note, Patience};

use super::{Condition, Driver, Inner, Site};
use crate::sync::Arc;
use crate::waiters::Waiters;

impl<D: Driver> Site<D> {
    /// Has a reader join a shared lease, if the station can do it at once, and observers need not be told. Then no alarm changes,
    /// and the caller puts the turn among those that hold here.
    pub(crate) fn join_at_once(
        &self,
        inner: &mut Inner<D::Waiters>,
        turn: TurnId,
        patience: Patience,
        note: &Note,
    ) -> Option<Arc<Hold>> {
        self.at_once(inner, |station, now| station.join_at_once(now, turn, patience, note))
    }

    /// Ends the turn of a reader beside others, if the station can do it at once, and observers need not be told. The outcome is
    /// `Released::Released`, and the turn is not among those that hold here any more. No alarm changes.
    pub fn leave_at_once(&self, inner: &mut Inner<D::Waiters>, turn: TurnId) -> bool {
        let left = self.at_once(inner, |station, now| station.leave_at_once(now, turn).then_some(()));
        left.inspect(|()| inner.waiters.turns().remove(turn)).is_some()
    }

    /// What the station answers without a change of its outputs.
    fn at_once<T>(
        &self,
        inner: &mut Inner<D::Waiters>,
        ask: impl FnOnce(&mut Station, Moment) -> Option<T>,
    ) -> Option<T> {
        if inner.condition == Condition::Broken || inner.diary.is_some() {
            return None;
        }
        let ask = || ask(&mut inner.station, self.ports.clock.now());
        // After a panic, the usual way leads to another one, which ends the station.
        catch_unwind(AssertUnwindSafe(ask)).ok().flatten()
    }
}
