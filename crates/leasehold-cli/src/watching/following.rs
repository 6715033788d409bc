//! Following the locks of a store from look to look.

use std::time::{Duration, SystemTime};

use leasehold::inspect::{Listing, Watch, watch};
use leasehold::kit::Slot;

use crate::exit::Failure;
use crate::poller::{Poller, Snapshot};

/// Something that has happened.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// When it was seen.
    pub(super) time: SystemTime,
    pub(super) seen: watch::Change,
    /// Whether the lock was held already when the watch began.
    pub(super) already: bool,
}

/// The snapshot of the last poll, to compare the next one with.
pub(crate) struct Following {
    poller: Poller,
    watch: Watch,
}

impl Following {
    /// Polls for the first time. A store that does not answer is an error.
    pub(crate) fn begin(mut poller: Poller) -> Result<Self, Failure> {
        let watch = Watch::new(listing(poller.first()?));
        Ok(Self { poller, watch })
    }

    /// The locks at the last poll, as if they had been acquired then.
    pub(crate) fn already(&self) -> Vec<Change> {
        told(watch::changes(&[], self.watch.last().entries(), Duration::ZERO), true)
    }

    /// Polls again, and returns the changes since; none while the store is unreachable.
    pub(crate) fn again(&mut self) -> Result<Vec<Change>, Failure> {
        let Some(next) = self.poller.again()? else {
            self.watch.miss();
            return Ok(Vec::new());
        };
        let mut changes = self.watch.next(listing(next), |lock| Slot::marked_by(lock).is_some());
        // A store that stops answering is asked no more: there may be thousands of leases that ended, and each question takes as long as
        // the store is given.
        let mut answers = true;
        for change in &mut changes {
            let revoked_by = match change.ended() {
                _ if !answers => Err(()),
                Some(token) => self.poller.broken_by(&change.name, token).map_err(drop),
                None => Ok(None),
            };
            answers = revoked_by.is_ok();
            change.settle(revoked_by);
        }
        Ok(told(changes, false))
    }

    /// How long to pause before the next look.
    pub(crate) fn pause(&self, every: Duration) -> Duration {
        self.watch.pause(every)
    }
}

fn listing(look: Snapshot) -> Listing {
    Listing::new(look.asked, look.at, look.entries)
}

fn told(changes: Vec<watch::Change>, already: bool) -> Vec<Change> {
    let time = SystemTime::now();
    changes.into_iter().map(|seen| Change { time, seen, already }).collect()
}
