//! Readers that join and leave beside others: without the way through inputs and outputs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_core::station::{Station, TurnId};
use lock_core::{Hold, Note};

use super::{Driver, Inner, Site};
use crate::sync::Arc;
use crate::waiters::Waiters;

impl<D: Driver> Site<D> {
    /// Has a reader whose wait begins now join a shared lease, if the station can do it without a request, and observers need not be told.
    /// No alarm changes.
    pub(crate) fn join_beside_others(&self, note: &Note) -> Option<(TurnId, Arc<Hold>)> {
        let mut inner = self.lock();
        let turn = inner.next_turn();
        let hold = inner.without_outputs(|station| station.join_beside_others(self.ports.clock.now(), turn, note))?;
        inner.waiters.turns().hold(turn, hold.lease().owner);
        Some((turn, hold))
    }
}

impl<W: Waiters> Inner<W> {
    /// Ends the turn of a reader beside others, if the station can do it without a request, and observers need not be told. Then the turn is
    /// not among those that hold here any more, and no alarm changes. The clock is not read: the hold may have been over.
    pub fn leave_beside_others(&mut self, turn: TurnId) -> bool {
        let left = self.without_outputs(|station| station.leave_beside_others(turn).then_some(()));
        left.inspect(|()| self.waiters.turns().remove(turn)).is_some()
    }

    /// What the station answers without a change of its outputs.
    fn without_outputs<T>(&mut self, ask: impl FnOnce(&mut Station) -> Option<T>) -> Option<T> {
        if self.station.is_broken() || self.diary.is_some() {
            return None;
        }
        // After a panic, the usual way leads to another one, which ends the station.
        catch_unwind(AssertUnwindSafe(|| ask(&mut self.station))).ok().flatten()
    }
}
