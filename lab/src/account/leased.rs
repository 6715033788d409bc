//! Locks of `leasehold`.

use std::thread;
use std::time::Duration;

use humantime::format_duration;
use leasehold::blocking::{Client, Guard, NamedLock, ReadGuard};
use leasehold::clock::{Clock, HostClock};
use leasehold::{AcquireError, Fairness, FencingToken, LockName, LockOptions, OnUnavailable};
use serde::{Deserialize, Serialize};

use super::lock::{Attempt, Left, Lock};
use super::mishap::Mishap;
use crate::shared::failure::{Exit, Failure};
use crate::shared::ground::Ground;
use crate::shared::raw::Raw;

/// How long a worker waits for the lock: only an unreachable store takes as long.
const WITHIN: Duration = Duration::from_secs(60);

/// When a store that did not answer is asked again.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Which deposits exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scope {
    /// Those to one account: the lock is named after it.
    Account,
    /// All of them: one lock.
    Everything,
    /// None: the lock is named after the deposit.
    Deposit,
}

/// A lock of `leasehold` as one worker sees it.
pub(crate) struct LeasedLock {
    ground: Ground,
    locks: Client,
    scope: Scope,
    account: u32,
    me: u64,
    ttl: Duration,
    entries: u64,
    hold: Option<Guard>,
}

impl LeasedLock {
    /// The lock for a worker that pays into this account.
    pub(crate) fn new(ground: &Ground, scope: Scope, ttl: Duration, account: u32, me: u64) -> Result<Self, Failure> {
        let (locks, ground) = (ground.open_locks()?, ground.clone());
        Ok(Self { ground, locks, scope, account, me, ttl, entries: 0, hold: None })
    }

    /// Acquires the lock for reading, beside other readers; nothing if it is not free and this is the first attempt.
    pub(crate) fn read(&self, attempt: Attempt, fairness: Fairness) -> Result<Option<ReadGuard>, Failure> {
        let options = match fairness {
            Fairness::Fair => self.options().fair(),
            Fairness::Barging => self.options().barging(),
        };
        acquire(attempt, &self.locks.rw_lock(self.name()?).read().options(options))
    }

    fn options(&self) -> LockOptions {
        LockOptions::default().ttl(self.ttl).wait(WITHIN).why("leasehold lab").on_unavailable(OnUnavailable::Wait)
    }

    fn name(&self) -> Result<LockName, Failure> {
        self.ground.lock_name(&match self.scope {
            Scope::Account => format!("lock:{}", self.account),
            Scope::Everything => "lock".to_owned(),
            Scope::Deposit => format!("lock:{}:{}", self.me, self.entries),
        })
    }
}

impl Lock for LeasedLock {
    fn try_enter(&mut self, _: &mut dyn Raw, attempt: Attempt, _: &mut Mishap) -> Result<bool, Failure> {
        self.hold = acquire(attempt, &self.locks.mutex(self.name()?).options(self.options()))?;
        self.entries += u64::from(self.hold.is_some());
        Ok(self.hold.is_some())
    }

    fn leave(&mut self, _: &mut dyn Raw, _: &mut Mishap) -> Result<Left, Failure> {
        release(self.hold.take());
        Ok(Left::default())
    }

    fn is_good(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.check().is_ok())
    }

    fn token(&self) -> Option<FencingToken> {
        self.hold.as_ref().map(|hold| hold.fencing_token())
    }
}

/// Releases a lock, if it was acquired.
pub(crate) fn release<M>(guard: Option<Guard<M>>) {
    // The library repeats an unanswered release; the next worker waits a little longer.
    guard.map(Guard::release).transpose().ok();
}

/// The guard; nothing if the lock is not free at the first attempt.
fn acquire<M>(attempt: Attempt, lock: &NamedLock<M>) -> Result<Option<Guard<M>>, Failure> {
    let deadline = HostClock.now() + WITHIN;
    loop {
        let acquired = match attempt {
            Attempt::First => lock.try_acquire(),
            Attempt::Again => lock.acquire().map(Some),
        };
        let failure = match acquired {
            Ok(guard) => return Ok(guard),
            Err(AcquireError::TimedOut { .. }) => return Err(never_got()),
            Err(error) => Failure::from(error),
        };
        match (failure.exit, attempt) {
            // The library is patient with a store that has too much to do only while it waits.
            (Exit::Unavailable, Attempt::First) if HostClock.now() < deadline => thread::sleep(RETRY_AFTER),
            _ => return Err(failure),
        }
    }
}

fn never_got() -> Failure {
    let within = format_duration(WITHIN);
    let message = format!("no worker acquired the lock within {within}; check that the store still answers");
    Failure::new(Exit::Unavailable, message)
}
