//! A store on a clock that the test moves.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use leasehold::clock::ManualClock;
use leasehold::memory::MemoryStore;
use leasehold::{AcquireError, Error};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// No wait of a test takes this long on any machine; it only bounds a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that ends at once if all is well.
pub(crate) async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// The same for what blocks.
pub(crate) fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    ended.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("waited in vain for {what}: {error}"))
}

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
    Lock(Error),
    Work(&'static str),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
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
        matches!(self, Self::Lock(Error::Acquire(AcquireError::TimedOut { .. })))
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Lock(Error::Lost(_)))
    }
}
