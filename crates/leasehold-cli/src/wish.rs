//! What is asked of a lock.

use std::time::Duration;

use lock_core::{Fairness, LockName, Mode, Ttl};
use lock_host::LongWaits;

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
