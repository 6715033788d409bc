//! One turn at a site, from joining the line to the end of the hold.

use std::sync::Arc;

use lock_core::Refusal;
use lock_core::station::{Input, TurnId};
use lock_host::{Asking, Stations};
use tokio::sync::oneshot;

use crate::driver::{Driver, Site};
use crate::tasks::{EndSender, Verdict};

/// A turn of this process. Dropping it leaves the line, or ends the hold.
pub(crate) struct Turn {
    _stations: Arc<Stations<Driver>>,
    pub(crate) site: Arc<Site>,
    id: TurnId,
}

impl Turn {
    /// Joins the line.
    pub(crate) fn join(asking: &Asking<Driver>) -> Result<(Self, oneshot::Receiver<Verdict>), Refusal> {
        let join = asking.join()?;
        let (stations, site) = (Arc::clone(asking.stations()), Arc::clone(asking.site()));
        let turn = Self { _stations: stations, site, id: join.turn };
        let mut inner = turn.site.lock();
        let verdict = inner.waiters.begin(turn.id);
        turn.site.feed(&mut inner, Input::Join(join));
        drop(inner);
        Ok((turn, verdict))
    }

    /// Leaves the line, or ends the hold; `ended` hears how that went, if the turn is still on.
    pub(crate) fn leave(&self, ended: Option<EndSender>) {
        let mut inner = self.site.lock();
        if inner.waiters.hear_end(self.id, ended) {
            self.site.feed(&mut inner, Input::Leave(self.id));
        }
        inner.waiters.forget_waiting(self.id);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave(None);
    }
}
