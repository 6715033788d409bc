//! The end of a turn that its user is done with.

use std::task::Poll;

use lock_core::station::{Input, Leaving, TurnId};

use super::{Driver, Inner, Site};
use crate::waiters::{End, Waiters};

impl<D: Driver> Site<D> {
    /// Ends a turn: it leaves the line, or its hold ends. If the outcome is not known at once, the turn is told later.
    pub fn end(&self, inner: &mut Inner<D::Waiters>, leaving: Leaving) -> Poll<End> {
        self.leave(inner, leaving);
        inner.waiters.turns().poll_end(leaving.turn)
    }

    /// Ends a turn whose outcome nobody needs.
    pub fn abandon(&self, inner: &mut Inner<D::Waiters>, turn: TurnId) {
        self.leave(inner, Leaving::now(turn));
        inner.waiters.turns().abandon(turn);
    }

    fn leave(&self, inner: &mut Inner<D::Waiters>, leaving: Leaving) {
        if inner.waiters.turns().is_open(leaving.turn) {
            self.feed(inner, Input::Leave(leaving));
        }
    }
}
