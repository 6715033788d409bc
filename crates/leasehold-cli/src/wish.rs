//! What is asked of a lock.

use std::time::Duration;

use lock_core::{Fairness, LockName, Mode, OnUnavailable, Ttl};
use lock_host::{LockOptions, LongWaits};

use crate::job::Job;

/// Which lock to ask for, and how.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: LockName,
    pub(crate) mode: Mode,
    pub(crate) ttl: Ttl,
    pub(crate) why: String,
    pub(crate) patience: Patience,
    pub(crate) fairness: Fairness,
    pub(crate) long_waits: LongWaits,
    pub(crate) busy_code: u8,
    pub(crate) job: Job,
}

impl Wish {
    /// How to hold the lock.
    pub(crate) fn options(&self) -> LockOptions {
        // A wait for an unreachable store ends at the same time as any other wait.
        let options =
            LockOptions::default().ttl(self.ttl.get()).why(self.why.as_str()).on_unavailable(OnUnavailable::Wait);
        let options = self.job.at_most.into_iter().fold(options, LockOptions::max_hold);
        let options = match self.patience {
            Patience::None => options.wait(Duration::ZERO),
            Patience::Until(limit) => options.wait(limit),
            Patience::Endless | Patience::Always => options,
        };
        let options = match self.fairness {
            Fairness::Fair => options.fair(),
            Fairness::Barging => options.barging(),
        };
        match self.long_waits {
            LongWaits::Reported => options,
            LongWaits::Expected => options.standing_by(),
        }
    }
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// Not at all.
    None,
    /// At most this long.
    Until(Duration),
    /// Without limit.
    Endless,
    /// The same, also for a store that is unreachable.
    Always,
}
