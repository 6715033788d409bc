//! The two facades as one: what a user can do with either.

use std::fmt;
use std::thread::JoinHandle as Thread;
use std::time::{Duration, Instant};

use lock_core::latch::{LatchError, LatchState};
use lock_host::LockOptions;
use tokio::runtime::Handle;

/// Which facade a test uses, and the backend that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facade {
    /// Tokio.
    Nonblocking,
    /// Plain threads.
    Blocking,
}

impl Facade {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Nonblocking => Self::Blocking,
            Self::Blocking => Self::Nonblocking,
        }
    }
}

impl fmt::Display for Facade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nonblocking => "nonblocking",
            Self::Blocking => "blocking",
        })
    }
}

/// A client of either facade.
#[derive(Clone, Debug)]
pub enum Client {
    /// Of the tokio facade.
    Nonblocking(lock_async::Client, Handle),
    /// Of the blocking facade.
    Blocking(lock_blocking::Client),
}

/// Options for a hold: the ttl, and no other limit.
pub(crate) fn options(ttl: Duration) -> LockOptions {
    LockOptions::default().ttl(ttl)
}

impl Client {
    /// Closes the client.
    pub(crate) fn close(&self) {
        match self {
            Self::Nonblocking(client, runtime) => runtime.block_on(client.close()),
            Self::Blocking(client) => client.close(),
        }
    }

    /// Arrives at a latch as somebody new.
    pub(crate) fn arrive(&self, name: &str) -> Result<LatchState, LatchError> {
        match self {
            Self::Nonblocking(client, runtime) => runtime.block_on(client.latch(name).arrive()),
            Self::Blocking(client) => client.latch(name).arrive(),
        }
    }

    /// Sets how many arrivals a latch expects.
    pub(crate) fn expect(&self, name: &str, count: u32) -> Result<LatchState, LatchError> {
        match self {
            Self::Nonblocking(client, runtime) => runtime.block_on(client.latch(name).expect(count)),
            Self::Blocking(client) => client.latch(name).expect(count),
        }
    }

    /// Begins a new generation of a latch.
    pub(crate) fn reset(&self, name: &str) -> Result<(), LatchError> {
        match self {
            Self::Nonblocking(client, runtime) => runtime.block_on(client.latch(name).reset()),
            Self::Blocking(client) => client.latch(name).reset(),
        }
    }

    /// Begins to wait for a latch.
    pub(crate) fn wait_for_latch(&self, name: &str, limit: Duration) -> Background<()> {
        let name = name.to_owned();
        self.in_background(move |client| match client {
            Self::Nonblocking(client, runtime) => runtime.block_on(client.latch(name).wait_for(limit)),
            Self::Blocking(client) => client.latch(name).wait_for(limit),
        })
    }

    /// Does something on another thread.
    pub(crate) fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> Result<T, LatchError> + Send + 'static,
    ) -> Background<T> {
        let client = self.clone();
        Background(std::thread::spawn(move || work(client)))
    }
}

/// A call about a latch on another thread.
#[derive(Debug)]
pub(crate) struct Background<T>(Thread<Result<T, LatchError>>);

impl<T> Background<T> {
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the outcome.
    pub(crate) fn outcome(self) -> Result<T, LatchError> {
        end_of(|| self.is_finished());
        self.0.join().unwrap()
    }
}

/// Longer than any wait in a test.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn end_of(is_finished: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_finished() {
        assert!(Instant::now() < until, "a wait did not end within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
