//! The two facades as one: what a user can do with either.

use std::fmt;
use std::thread::JoinHandle as Thread;
use std::time::{Duration, Instant};

use lock_core::latch::{LatchError, LatchState};
use lock_core::{AcquireError, FencingToken, Lost};
use lock_host::{LockOptions, ReleaseError, VerifyError};
use tokio::runtime::Handle;
use tokio::task::JoinHandle as Task;

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

/// A guard of either facade.
#[derive(Debug)]
pub enum Guard {
    /// Of the tokio facade.
    Nonblocking(lock_async::Guard, Handle),
    /// Of the blocking facade.
    Blocking(lock_blocking::Guard),
}

/// A waiter in the background.
#[derive(Debug)]
pub enum Waiter {
    /// A task.
    Nonblocking(Task<Result<lock_async::Guard, AcquireError>>, Handle),
    /// A thread, and its client.
    Blocking(Thread<Result<lock_blocking::Guard, AcquireError>>, lock_blocking::Client),
}

/// Options for a hold: the ttl, and no other limit.
pub(crate) fn options(ttl: Duration) -> LockOptions {
    LockOptions::default().ttl(ttl)
}

impl Client {
    pub(crate) fn acquire(&self, name: &str, options: &LockOptions) -> Result<Guard, AcquireError> {
        match self {
            Self::Nonblocking(client, runtime) => {
                let guard = runtime.block_on(client.mutex(name).options(options.clone()).acquire())?;
                Ok(Guard::Nonblocking(guard, runtime.clone()))
            }
            Self::Blocking(client) => Ok(Guard::Blocking(client.mutex(name).options(options.clone()).acquire()?)),
        }
    }

    pub(crate) fn try_acquire(&self, name: &str, options: &LockOptions) -> Result<Option<Guard>, AcquireError> {
        match self {
            Self::Nonblocking(client, runtime) => {
                let guard = runtime.block_on(client.mutex(name).options(options.clone()).try_acquire())?;
                Ok(guard.map(|guard| Guard::Nonblocking(guard, runtime.clone())))
            }
            Self::Blocking(client) => {
                Ok(client.mutex(name).options(options.clone()).try_acquire()?.map(Guard::Blocking))
            }
        }
    }

    /// Begins to wait for a lock.
    pub(crate) fn wait_for(&self, name: &str, options: &LockOptions) -> Waiter {
        match self {
            Self::Nonblocking(client, runtime) => {
                let mutex = client.mutex(name).options(options.clone());
                Waiter::Nonblocking(runtime.spawn(async move { mutex.acquire().await }), runtime.clone())
            }
            Self::Blocking(client) => {
                let mutex = client.mutex(name).options(options.clone());
                Waiter::Blocking(std::thread::spawn(move || mutex.acquire()), client.clone())
            }
        }
    }
}

impl Client {
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

impl Waiter {
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Nonblocking(task, _) => task.is_finished(),
            Self::Blocking(thread, _) => thread.is_finished(),
        }
    }

    /// Waits for the outcome of the wait.
    pub(crate) fn outcome(self) -> Result<Guard, AcquireError> {
        end_of(|| self.is_finished());
        match self {
            Self::Nonblocking(task, runtime) => Ok(Guard::Nonblocking(runtime.block_on(task).unwrap()?, runtime)),
            Self::Blocking(thread, _) => Ok(Guard::Blocking(thread.join().unwrap()?)),
        }
    }

    /// Stops the waiting: the future is dropped, or, since a thread cannot be, its client is closed.
    pub(crate) fn cancel(self) {
        match self {
            Self::Nonblocking(task, runtime) => {
                task.abort();
                assert!(runtime.block_on(task).is_err(), "it had its lock already");
            }
            Self::Blocking(thread, client) => {
                client.close();
                end_of(|| thread.is_finished());
                assert!(matches!(thread.join().unwrap(), Err(AcquireError::Closed)), "it had its lock already");
            }
        }
    }
}

/// Longer than any wait in a test.
const PATIENCE: Duration = Duration::from_secs(60);

fn end_of(is_finished: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_finished() {
        assert!(Instant::now() < until, "a wait did not end within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Guard {
    pub(crate) fn token(&self) -> FencingToken {
        match self {
            Self::Nonblocking(guard, _) => guard.fencing_token(),
            Self::Blocking(guard) => guard.fencing_token(),
        }
    }

    pub(crate) fn remaining(&self) -> Duration {
        match self {
            Self::Nonblocking(guard, _) => guard.remaining(),
            Self::Blocking(guard) => guard.remaining(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Lost> {
        match self {
            Self::Nonblocking(guard, _) => guard.check(),
            Self::Blocking(guard) => guard.check(),
        }
    }

    pub(crate) fn verify(&self) -> Result<(), VerifyError> {
        match self {
            Self::Nonblocking(guard, runtime) => runtime.block_on(guard.verify()),
            Self::Blocking(guard) => guard.verify(),
        }
    }

    /// The notice of loss, if it has arrived.
    pub(crate) fn lost(&self) -> Option<Lost> {
        match self {
            Self::Nonblocking(guard, runtime) => {
                runtime.block_on(async { tokio::time::timeout(Duration::ZERO, guard.lost()).await.ok() })
            }
            Self::Blocking(guard) => guard.lost_within(Duration::ZERO),
        }
    }

    pub(crate) fn release(self) -> Result<(), ReleaseError> {
        match self {
            Self::Nonblocking(guard, runtime) => runtime.block_on(guard.release()),
            Self::Blocking(guard) => guard.release(),
        }
    }
}
