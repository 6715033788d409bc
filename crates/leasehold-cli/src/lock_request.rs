//! A request for a lock.

use std::time::Duration;

use leasehold::inspect::Mode;
use leasehold::{LockName, LockOptions};

use crate::job::Job;

/// Which lock to ask for, and how.
#[derive(Clone, Debug)]
pub(crate) struct LockRequest {
    pub(crate) name: LockName,
    pub(crate) mode: Mode,
    /// How to hold it; how long to wait is `patience`.
    pub(crate) options: LockOptions,
    pub(crate) patience: Patience,
    pub(crate) busy_code: u8,
    pub(crate) job: Job,
}

impl LockRequest {
    /// How to hold the lock, and how long to wait for it.
    pub(crate) fn options(&self) -> LockOptions {
        let options = self.options.clone();
        match self.patience {
            Patience::None => options.wait(Duration::ZERO),
            Patience::Until(limit) => options.wait(limit),
            Patience::Endless | Patience::Always => options,
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
