//! The end of a turn that its user is done with.

use lock_core::station::{Input, Leaving, TurnId};

use super::{Driver, Inner, Site};
use crate::sync::Arc;
use crate::waiters::Waiters;

impl<D: Driver> Site<D> {
    /// Ends a turn whose outcome nobody needs.
    pub fn abandon(self: &Arc<Self>, inner: &mut Inner<D::Waiters>, turn: TurnId) {
        self.leave(inner, Leaving::now(turn));
        inner.waiters.turns().abandon(turn);
    }

    /// Ends a turn: it leaves the line, or its hold ends. The turn is told the outcome.
    pub fn leave(self: &Arc<Self>, inner: &mut Inner<D::Waiters>, leaving: Leaving) {
        if inner.waiters.turns().is_open(leaving.turn) {
            self.feed(inner, Input::Leave(leaving));
        }
    }
}
