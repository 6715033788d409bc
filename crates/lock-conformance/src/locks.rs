//! Locks of both facades, and their guards.

use std::thread::JoinHandle as Thread;
use std::time::Duration;

use lock_core::limit::LimitError;
use lock_core::{AcquireError, FencingToken, Lost};
use lock_host::{Exclusive, HoldError, LockOptions, Permits, Shared};
use tokio::runtime::Handle;
use tokio::task::JoinHandle as Task;

use crate::Client;
use crate::facade::end_of;

/// A lock of either facade.
pub(crate) enum Lock<M> {
    /// Of the tokio facade.
    Nonblocking(lock_async::NamedLock<M>, Handle),
    /// Of the blocking facade, and its client.
    Blocking(lock_blocking::NamedLock<M>, lock_blocking::Client),
}

/// A guard of either facade.
#[derive(Debug)]
pub enum Guard<M = Exclusive> {
    /// Of the tokio facade.
    Nonblocking(lock_async::Guard<M>, Handle),
    /// Of the blocking facade.
    Blocking(lock_blocking::Guard<M>),
}

/// A waiter in the background.
#[derive(Debug)]
pub enum Waiter<M = Exclusive> {
    /// A task.
    Nonblocking(Task<Result<lock_async::Guard<M>, AcquireError>>, Handle),
    /// A thread, and its client.
    Blocking(Thread<Result<lock_blocking::Guard<M>, AcquireError>>, lock_blocking::Client),
}

impl Client {
    pub(crate) fn mutex(&self, name: &str, options: &LockOptions) -> Lock<Exclusive> {
        match self {
            Self::Nonblocking(client, runtime) => {
                Lock::Nonblocking(client.mutex(name).options(options.clone()), runtime.clone())
            }
            Self::Blocking(client) => Lock::Blocking(client.mutex(name).options(options.clone()), client.clone()),
        }
    }

    /// The side of the readers.
    pub(crate) fn read(&self, name: &str, options: &LockOptions) -> Lock<Shared> {
        match self {
            Self::Nonblocking(client, runtime) => {
                Lock::Nonblocking(client.rw_lock(name).read().options(options.clone()), runtime.clone())
            }
            Self::Blocking(client) => {
                Lock::Blocking(client.rw_lock(name).read().options(options.clone()), client.clone())
            }
        }
    }

    /// The side of the writers.
    pub(crate) fn write(&self, name: &str, options: &LockOptions) -> Lock<Exclusive> {
        match self {
            Self::Nonblocking(client, runtime) => {
                Lock::Nonblocking(client.rw_lock(name).write().options(options.clone()), runtime.clone())
            }
            Self::Blocking(client) => {
                Lock::Blocking(client.rw_lock(name).write().options(options.clone()), client.clone())
            }
        }
    }

    pub(crate) fn semaphore(&self, name: &str, limit: u32, options: &LockOptions) -> Lock<Permits> {
        match self {
            Self::Nonblocking(client, runtime) => {
                Lock::Nonblocking(client.semaphore(name, limit).options(options.clone()), runtime.clone())
            }
            Self::Blocking(client) => {
                Lock::Blocking(client.semaphore(name, limit).options(options.clone()), client.clone())
            }
        }
    }

    pub(crate) fn acquire(&self, name: &str, options: &LockOptions) -> Result<Guard, AcquireError> {
        self.mutex(name, options).acquire()
    }

    pub(crate) fn try_acquire(&self, name: &str, options: &LockOptions) -> Result<Option<Guard>, AcquireError> {
        self.mutex(name, options).try_acquire()
    }

    /// Begins to wait for a lock.
    pub(crate) fn wait_for(&self, name: &str, options: &LockOptions) -> Waiter {
        self.mutex(name, options).wait()
    }
}

impl<M: 'static> Lock<M> {
    pub(crate) fn acquire(&self) -> Result<Guard<M>, AcquireError> {
        match self {
            Self::Nonblocking(lock, runtime) => Ok(Guard::of(runtime)(runtime.block_on(lock.acquire())?)),
            Self::Blocking(lock, _) => Ok(Guard::Blocking(lock.acquire()?)),
        }
    }

    pub(crate) fn try_acquire(&self) -> Result<Option<Guard<M>>, AcquireError> {
        match self {
            Self::Nonblocking(lock, runtime) => Ok(runtime.block_on(lock.try_acquire())?.map(Guard::of(runtime))),
            Self::Blocking(lock, _) => Ok(lock.try_acquire()?.map(Guard::Blocking)),
        }
    }

    /// Begins to wait.
    pub(crate) fn wait(&self) -> Waiter<M> {
        match self {
            Self::Nonblocking(lock, runtime) => {
                let lock = lock.clone();
                Waiter::Nonblocking(runtime.spawn(async move { lock.acquire().await }), runtime.clone())
            }
            Self::Blocking(lock, client) => {
                let lock = lock.clone();
                Waiter::Blocking(std::thread::spawn(move || lock.acquire()), client.clone())
            }
        }
    }
}

impl Lock<Permits> {
    pub(crate) fn set_limit(&self, limit: u32) -> Result<(), LimitError> {
        match self {
            Self::Nonblocking(lock, runtime) => runtime.block_on(lock.set_limit(limit)),
            Self::Blocking(lock, _) => lock.set_limit(limit),
        }
    }

    pub(crate) fn limit(&self) -> Result<u32, LimitError> {
        match self {
            Self::Nonblocking(lock, runtime) => runtime.block_on(lock.limit()),
            Self::Blocking(lock, _) => lock.limit(),
        }
    }

    pub(crate) fn available_permits(&self) -> Result<u32, LimitError> {
        match self {
            Self::Nonblocking(lock, runtime) => runtime.block_on(lock.available_permits()),
            Self::Blocking(lock, _) => lock.available_permits(),
        }
    }

    pub(crate) fn acquire_many(&self, count: u32) -> Result<Guard<Permits>, AcquireError> {
        match self {
            Self::Nonblocking(lock, runtime) => Ok(Guard::of(runtime)(runtime.block_on(lock.acquire_many(count))?)),
            Self::Blocking(lock, _) => Ok(Guard::Blocking(lock.acquire_many(count)?)),
        }
    }

    pub(crate) fn try_acquire_many(&self, count: u32) -> Result<Option<Guard<Permits>>, AcquireError> {
        match self {
            Self::Nonblocking(lock, runtime) => {
                Ok(runtime.block_on(lock.try_acquire_many(count))?.map(Guard::of(runtime)))
            }
            Self::Blocking(lock, _) => Ok(lock.try_acquire_many(count)?.map(Guard::Blocking)),
        }
    }

    /// Begins to wait for so many.
    pub(crate) fn wait_for_many(&self, count: u32) -> Waiter<Permits> {
        match self {
            Self::Nonblocking(lock, runtime) => {
                let lock = lock.clone();
                Waiter::Nonblocking(runtime.spawn(async move { lock.acquire_many(count).await }), runtime.clone())
            }
            Self::Blocking(lock, client) => {
                let lock = lock.clone();
                Waiter::Blocking(std::thread::spawn(move || lock.acquire_many(count)), client.clone())
            }
        }
    }
}

impl<M: 'static> Waiter<M> {
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Nonblocking(task, _) => task.is_finished(),
            Self::Blocking(thread, _) => thread.is_finished(),
        }
    }

    /// Waits for the outcome of the wait.
    pub(crate) fn outcome(self) -> Result<Guard<M>, AcquireError> {
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

impl<M> Guard<M> {
    fn of(runtime: &Handle) -> impl Fn(lock_async::Guard<M>) -> Self {
        move |guard| Self::Nonblocking(guard, runtime.clone())
    }

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

    pub(crate) fn verify(&self) -> Result<(), HoldError> {
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

    pub(crate) fn release(self) -> Result<(), HoldError> {
        match self {
            Self::Nonblocking(guard, runtime) => runtime.block_on(guard.release()),
            Self::Blocking(guard) => guard.release(),
        }
    }
}

impl Guard {
    pub(crate) fn release_keeping(self, time: Duration) -> Result<(), HoldError> {
        match self {
            Self::Nonblocking(guard, runtime) => runtime.block_on(guard.release_keeping(time)),
            Self::Blocking(guard) => guard.release_keeping(time),
        }
    }
}
