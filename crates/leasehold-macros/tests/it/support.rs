//! A store on a clock that the test moves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::memory::MemoryStore;
use leasehold::{AcquireError, ManualClock, WhileHeldError};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The clock, and the store that runs on it.
pub(crate) struct Bench {
    pub(crate) clock: ManualClock,
    store: MemoryStore,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::new(Arc::new(clock.clone()));
        Self { clock, store }
    }

    pub(crate) fn client(&self) -> leasehold::Client {
        let builder = leasehold::Client::builder(Arc::new(self.store.nonblocking()));
        builder.clock(Arc::new(self.clock.clone())).build().unwrap()
    }

    pub(crate) fn blocking(&self) -> leasehold::blocking::Client {
        let builder = leasehold::blocking::Client::builder(Arc::new(self.store.blocking()));
        builder.clock(Arc::new(self.clock.clone())).build().unwrap()
    }
}

/// An error of an application.
#[derive(Debug, PartialEq)]
pub(crate) enum Failed {
    Lock(WhileHeldError),
    Work(&'static str),
}

impl From<WhileHeldError> for Failed {
    fn from(error: WhileHeldError) -> Self {
        Self::Lock(error)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Failed {
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Lock(WhileHeldError::Acquire(AcquireError::TimedOut { .. })))
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Lock(WhileHeldError::Lost(_)))
    }
}
