//! The end of a turn that its user is done with.

use lock_core::Keep;
use lock_core::station::{Input, Leaving, TurnId};

use super::{Driver, Inner, Locked, Site};
use crate::sync::Arc;
use crate::waiters::Waiters;

impl<D: Driver> Site<D> {
    /// Ends a turn whose outcome nobody needs.
    pub fn abandon(self: &Arc<Self>, inner: &mut Inner<D::Waiters>, turn: TurnId) {
        self.leave(inner, Leaving::now(turn));
        inner.waiters.turns().abandon(turn);
        self.watch_releases(inner);
    }

    /// The store is to keep the lock for this time from now on, however the turn ends.
    pub(crate) fn keep_at_least(&self, turn: TurnId, keep: Keep) {
        let mut inner = self.lock();
        if !inner.station.is_broken() {
            inner.station.keep_at_least(self.context.clock.now(), turn, keep);
        }
    }

    /// Runs the releases another way that have had no answer for too long, and comes back for the others.
    pub(super) fn watch_releases(self: &Arc<Self>, inner: &mut Inner<D::Waiters>) {
        let Some(after) = D::STALLED_AFTER else { return };
        let now = self.context.clock.now();
        let Inner { waiters, station, .. } = &mut *inner;
        if station.is_broken() {
            return;
        }
        let (stalled, next) = station.stalled_releases(now, after, |turn| waiters.turns().is_awaited(turn));
        stalled.into_iter().for_each(|release| D::run_stalled(self, release));
        next.into_iter().for_each(|since| self.wake_by(inner, since + after));
    }

    /// Ends a turn, which gets the outcome. The site stays locked, so that the caller can run what the station asks for.
    pub fn end_turn(self: &Arc<Self>, leaving: Leaving) -> Locked<'_, D> {
        let mut inner = self.lock();
        self.leave(&mut inner, leaving);
        inner
    }

    /// Ends a turn: it leaves the wait queue, or its hold ends. The turn gets the outcome.
    fn leave(self: &Arc<Self>, inner: &mut Inner<D::Waiters>, leaving: Leaving) {
        if inner.waiters.turns().is_open(leaving.turn) {
            self.feed(inner, Input::Leave(leaving));
        }
    }
}
