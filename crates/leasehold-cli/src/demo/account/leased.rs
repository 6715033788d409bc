//! Locks of `leasehold`.

use std::thread;
use std::time::Duration;

use lock_core::{Fairness, FencingToken, Mode, Ttl};
use lock_host::{Clock, HostClock, LongWaits};
use serde::{Deserialize, Serialize};

use super::super::ground::Ground;
use super::super::raw::Raw;
use super::lock::{Attempt, Left, Lock};
use super::mishap::Mishap;
use crate::durations::human;
use crate::exit::{BUSY, Exit, Failure};
use crate::hold::{Hold, Parted};
use crate::job::Job;
use crate::locks::Locks;
use crate::wish::{Patience, Wish};

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
    locks: Locks,
    scope: Scope,
    account: u32,
    me: u64,
    ttl: Ttl,
    entries: u64,
    hold: Option<Hold>,
}

impl LeasedLock {
    /// The lock for a worker that pays into this account.
    pub(crate) fn new(ground: &Ground, scope: Scope, ttl: Duration, account: u32, me: u64) -> Result<Self, Failure> {
        let (locks, ground) = (ground.open_locks()?, ground.clone());
        let ttl = Ttl::new(ttl).map_err(|error| Failure::system("the demo's ttl is invalid", error))?;
        Ok(Self { ground, locks, scope, account, me, ttl, entries: 0, hold: None })
    }

    /// Acquires the lock for reading, beside other readers; nothing if it is not free and this is the first attempt.
    pub(crate) fn read(&self, attempt: Attempt, fairness: Fairness) -> Result<Option<Hold>, Failure> {
        let wish = Wish { fairness, ..self.wish(Mode::Shared, attempt)? };
        unless_busy(attempt, || self.locks.acquire(&wish))
    }

    fn wish(&self, mode: Mode, attempt: Attempt) -> Result<Wish, Failure> {
        let patience = match attempt {
            Attempt::First => Patience::None,
            Attempt::Again => Patience::Until(WITHIN),
        };
        let name = match self.scope {
            Scope::Account => format!("lock:{}", self.account),
            Scope::Everything => "lock".to_owned(),
            Scope::Deposit => format!("lock:{}:{}", self.me, self.entries),
        };
        let (name, why) = (self.ground.lock_name(&name)?, "leasehold demo".to_owned());
        let fairness = Fairness::Fair;
        let long_waits = LongWaits::Reported;
        Ok(Wish {
            name,
            mode,
            ttl: self.ttl,
            why,
            patience,
            fairness,
            long_waits,
            busy_code: BUSY,
            job: Job::default(),
        })
    }
}

impl Lock for LeasedLock {
    fn try_enter(&mut self, _: &mut dyn Raw, attempt: Attempt, _: &mut Mishap) -> Result<bool, Failure> {
        let wish = self.wish(Mode::Exclusive, attempt)?;
        self.hold = unless_busy(attempt, || self.locks.acquire(&wish))?;
        self.entries += u64::from(self.hold.is_some());
        Ok(self.hold.is_some())
    }

    fn leave(&mut self, _: &mut dyn Raw, _: &mut Mishap) -> Result<Left, Failure> {
        release(self.hold.take());
        Ok(Left::default())
    }

    fn is_good(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.lost().is_none())
    }

    fn token(&self) -> Option<FencingToken> {
        self.hold.as_ref().map(Hold::token)
    }
}

/// Releases a lock, if it was acquired.
pub(crate) fn release(hold: Option<Hold>) {
    match hold.map(Hold::release) {
        // The library repeats an unanswered release; the next worker waits a little longer.
        None | Some(Parted::Released | Parted::AlreadyLost(_) | Parted::Unknown(_)) => {}
    }
}

/// The hold; nothing if the lock is not free at the first attempt.
fn unless_busy(attempt: Attempt, acquire: impl Fn() -> Result<Hold, Failure>) -> Result<Option<Hold>, Failure> {
    let deadline = HostClock.now() + WITHIN;
    loop {
        let failure = match acquire() {
            Ok(hold) => return Ok(Some(hold)),
            Err(failure) => failure,
        };
        match (failure.exit, attempt) {
            (Exit::Busy(_), Attempt::First) => return Ok(None),
            (Exit::Busy(_), Attempt::Again) => return Err(never_got()),
            // The library is patient with a store that has too much to do only while it waits.
            (Exit::Unavailable, Attempt::First) if HostClock.now() < deadline => thread::sleep(RETRY_AFTER),
            _ => return Err(failure),
        }
    }
}

fn never_got() -> Failure {
    let message = format!("no worker acquired the lock within {}; check that the store still answers", human(WITHIN));
    Failure::new(Exit::Unavailable, message)
}
