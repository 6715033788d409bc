//! A weak handle of a hold: sees its end without keeping it.

use std::fmt;
use std::time::Duration;

use lock_core::station::{Input, TurnId};
use lock_core::{Hold, Lost};

use crate::site::{Driver, Site};
use crate::sync::{Arc, Weak};

/// Sees the end of a hold. Keeps neither the hold nor the client.
pub struct WeakHeld<D: Driver> {
    site: Weak<Site<D>>,
    turn: TurnId,
    hold: Arc<Hold>,
}

impl<D: Driver> WeakHeld<D> {
    pub(crate) fn new(site: &Arc<Site<D>>, turn: TurnId, hold: Arc<Hold>) -> Self {
        Self { site: Arc::downgrade(site), turn, hold }
    }

    /// Where it is held; `None` once the client is gone, which is after the hold has ended.
    pub fn site(&self) -> Option<Arc<Site<D>>> {
        self.site.upgrade()
    }

    /// The turn that holds or held.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// What the station knows of the hold, which may have changed its mode since.
    fn hold(&self) -> &Hold {
        self.hold.latest()
    }

    /// Why the hold was lost, if it was.
    pub fn lost(&self) -> Option<Lost> {
        self.hold().lost()
    }

    /// Whether the hold was lost, or its guard has ended it.
    pub fn has_ended(&self) -> bool {
        let hold = self.hold();
        hold.lost().is_some() || hold.is_given_up() || self.site.strong_count() == 0
    }

    /// How much longer the hold lasts unless it is renewed; `None` once it was lost, or its guard has ended it. At the deadline
    /// this ticks the station, so that the hold is lost even if the alarms are late.
    pub fn remaining(&self, site: &Arc<Site<D>>) -> Option<Duration> {
        let remaining = || self.hold().remaining(site.context().clock.now());
        if !self.has_ended() && remaining().is_zero() {
            site.handle(Input::Tick);
        }
        (!self.has_ended()).then(remaining)
    }
}

impl<D: Driver> Clone for WeakHeld<D> {
    fn clone(&self) -> Self {
        Self { site: Weak::clone(&self.site), turn: self.turn, hold: Arc::clone(&self.hold) }
    }
}

impl<D: Driver> fmt::Debug for WeakHeld<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hold = self.hold();
        f.debug_struct("WeakHeld")
            .field("name", &hold.lease().name)
            .field("token", &hold.token())
            .finish_non_exhaustive()
    }
}
