//! A lock of any kind, and how a worker waits for it.

use std::thread;
use std::time::Duration;

use leasehold::clock::Moment;
use leasehold::clock::{Clock, HostClock};
use serde::{Deserialize, Serialize};

use super::cues::{Cues, Did};
use super::leased::{LeasedLock, Scope};
use super::lock::{Attempt, Left, Lock};
use super::memory::{Memory, MemoryLock, Shared};
use super::mishap::Mishap;
use super::naive::{NaiveLock, Recipe};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::raw::Raw;

/// How often a lock is tried.
const POLL: Duration = Duration::from_millis(2);
/// After how long without an entry of any worker a worker gives up, if the holder was killed.
const STUCK_AFTER: Duration = Duration::from_millis(1500);

/// How workers are kept apart.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Method {
    /// Not at all.
    None,
    /// By a lock in memory.
    Memory(Shared),
    /// By a naive lock in the store.
    Naive(Recipe),
    /// By a lock of `leasehold`, which renews its lease for as long as the holder runs.
    Lease { ttl: Duration, scope: Scope },
}

/// Whether workers give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Patience {
    /// After some time in which no worker has entered.
    Limited,
    Endless,
}

/// A lock as one worker sees it.
pub(crate) struct Gate {
    lock: Option<Box<dyn Lock>>,
    cues: Cues,
    patience: Patience,
    /// How many times the lock was taken when the worker came.
    pub(crate) waits: u64,
}

/// Who is at the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor {
    /// Unique among the workers.
    pub(crate) me: u64,
    pub(crate) account: u32,
    pub(crate) patience: Patience,
}

impl Gate {
    /// The gate for a worker whose process has this memory.
    pub(crate) fn new(method: Method, ground: &Ground, visitor: Visitor, memory: &Memory) -> Result<Self, Failure> {
        let Visitor { me, account, patience } = visitor;
        let cues = Cues::new(ground, me);
        let lock: Option<Box<dyn Lock>> = match method {
            Method::None => None,
            Method::Memory(shared) => Some(Box::new(MemoryLock::new(shared, memory))),
            Method::Naive(recipe) => Some(Box::new(NaiveLock::new(recipe, ground, me, &cues))),
            Method::Lease { ttl, scope } => Some(Box::new(LeasedLock::new(ground, scope, ttl, account, me)?)),
        };
        Ok(Self { lock, cues, patience, waits: 0 })
    }

    /// Waits until the worker may enter, and says when that was; nothing if the lock is stuck.
    pub(crate) fn enter(&mut self, raw: &mut dyn Raw, mishap: &mut Mishap) -> Result<Option<Moment>, Failure> {
        let mut attempt = Attempt::First;
        while !self.try_enter(raw, attempt, mishap)? {
            if attempt == Attempt::First {
                self.waits += 1;
                self.cues.tell(raw, Did::Wait)?;
            }
            attempt = Attempt::Again;
            if self.patience == Patience::Limited && self.cues.since_last_entry(raw)? > STUCK_AFTER {
                return Ok(None);
            }
            thread::sleep(POLL);
        }
        let now = HostClock.now();
        self.cues.note_entry(raw, now)?;
        Ok(Some(now))
    }

    fn try_enter(&mut self, raw: &mut dyn Raw, attempt: Attempt, mishap: &mut Mishap) -> Result<bool, Failure> {
        self.lock.as_mut().map_or(Ok(true), |lock| lock.try_enter(raw, attempt, mishap))
    }

    /// Releases the lock.
    pub(crate) fn leave(&mut self, raw: &mut dyn Raw, mishap: &mut Mishap) -> Result<Left, Failure> {
        let left = self.lock.as_mut().map_or(Ok(Left::default()), |lock| lock.leave(raw, mishap))?;
        self.cues.tell(raw, Did::Leave)?;
        Ok(left)
    }

    /// The lock, if there is one.
    pub(crate) fn lock(&mut self) -> Option<&mut dyn Lock> {
        self.lock.as_deref_mut().map(|lock| lock as &mut dyn Lock)
    }
}
