//! One turn at a site, from joining the line to the end of the hold, on the threads of users.

use std::time::Duration;

use lock_core::station::{Input, TurnId};
use lock_core::{BackendError, Ended, Hold, Refusal};
use lock_host::{Asking, NAP_MAX, Stations};

use crate::driver::{Driver, Locked, Site, find_hands, run};
use crate::sync::{Arc, PoisonError};
use crate::threads::{Presence, Thread};

/// A turn of this process. Dropping it ends the hold.
pub(crate) struct Turn {
    _stations: Arc<Stations<Driver>>,
    pub(crate) site: Arc<Site>,
    id: TurnId,
}

impl Turn {
    /// Joins the line and waits for the verdict, running claims meanwhile.
    pub(crate) fn join(asking: &Asking<Driver>) -> Result<(Self, Arc<Hold>), Refusal> {
        let join = asking.join()?;
        let (stations, site) = (Arc::clone(asking.stations()), Arc::clone(asking.site()));
        let turn = Self { _stations: stations, site, id: join.turn };
        let mut inner = turn.site.lock();
        inner.waiters.begin(turn.id);
        turn.site.feed(&mut inner, Input::Join(join));
        let (mut inner, verdict) = turn.work(inner, |thread| thread.verdict.take());
        if verdict.is_err() {
            // What a waiter that is turned away leaves behind it clears itself: its process may end now.
            if let Some(release) = inner.waiters.take_own(turn.id) {
                inner = run(&turn.site, inner, release);
            }
            inner.waiters.remove(turn.id);
        } else if let Some(thread) = inner.waiters.get_mut(turn.id) {
            thread.presence = Presence::Away;
        }
        find_hands(&turn.site, &mut inner.waiters);
        drop(inner);
        Ok((turn, verdict?))
    }

    /// Ends the hold and waits until the store was told; `None` if that was done before.
    pub(crate) fn leave(&self) -> Option<Result<Ended, BackendError>> {
        let mut inner = self.site.lock();
        inner.waiters.get_mut(self.id)?.presence = Presence::Here;
        self.site.feed(&mut inner, Input::Leave(self.id));
        let (mut inner, ended) = self.work(inner, |thread| thread.ended.take());
        inner.waiters.remove(self.id);
        find_hands(&self.site, &mut inner.waiters);
        Some(ended)
    }

    /// Sleeps until the hold is lost, but for at most `nap` at a time.
    pub(crate) fn nap_until_lost(&self, hold: &Hold, nap: Duration) {
        let mut inner = self.site.lock();
        if let Some(thread) = inner.waiters.get_mut(self.id).filter(|_| hold.lost().is_none()) {
            let bell = Arc::clone(&thread.bell);
            drop(bell.wait_timeout(inner, nap).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Runs what is for this thread to run and sleeps by turns, until `done` has something.
    fn work<'a, T>(&'a self, mut inner: Locked<'a>, done: impl Fn(&mut Thread) -> Option<T>) -> (Locked<'a>, T) {
        loop {
            if let Some(result) = inner.waiters.get_mut(self.id).and_then(&done) {
                return (inner, result);
            }
            inner = match inner.waiters.take_own(self.id) {
                Some(action) => run(&self.site, inner, action),
                None => self.sleep(inner),
            };
        }
    }

    fn sleep<'a>(&'a self, mut inner: Locked<'a>) -> Locked<'a> {
        find_hands(&self.site, &mut inner.waiters);
        let Some(thread) = inner.waiters.get_mut(self.id) else { return inner };
        thread.presence = Presence::Asleep;
        let bell = Arc::clone(&thread.bell);
        let mut inner = bell.wait_timeout(inner, NAP_MAX).unwrap_or_else(PoisonError::into_inner).0;
        if let Some(thread) = inner.waiters.get_mut(self.id) {
            thread.presence = Presence::Here;
        }
        inner
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}
