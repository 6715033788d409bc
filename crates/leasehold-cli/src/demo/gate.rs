//! The locks of the demo, from none to a lease of `leasehold`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use lock_core::{Fairness, FencingToken, Mode, Moment, Ttl};
use lock_host::{Clock, HostClock};
use serde::{Deserialize, Serialize};

use super::ground::Ground;
use super::raw::Raw;
use crate::durations::human;
use crate::exit::{BUSY, Exit, Failure};
use crate::hold::{Hold, Parted};
use crate::job::Job;
use crate::locks::Locks;
use crate::wish::{Patience, Wish};

/// How often a naive lock is tried.
const POLL: Duration = Duration::from_millis(2);
/// The time between the check of a lock and setting it: as long as two requests to a remote store.
const LOOK_TO_SET: Duration = Duration::from_millis(10);
/// After how long without an entry a worker counts as stuck. Longer than every hold of the demo.
pub(crate) const STUCK_AFTER: Duration = Duration::from_millis(1500);
/// How long a worker waits for a lock of `leasehold`: only an unreachable store takes as long.
const LEASE_WITHIN: Duration = Duration::from_secs(60);

/// How workers are kept apart.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Method {
    /// Not at all.
    None,
    /// Check whether the key exists; if not, set it.
    LookThenSet,
    /// Set the key if it does not exist, in one request.
    SetIfAbsent { expiry: Option<Duration>, release: Release },
    /// A lock of `leasehold`, which renews its lease for as long as the holder runs.
    Lease { ttl: Duration },
}

/// How a naive lock is released.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Release {
    /// By deleting the key.
    Blind,
    /// By deleting the key if it still belongs to the worker.
    ByOwner,
}

/// When a worker last entered.
#[derive(Clone, Debug)]
pub(crate) struct LastEntry(Arc<AtomicU64>);

impl LastEntry {
    pub(crate) fn now() -> Self {
        Self(Arc::new(AtomicU64::new(HostClock.now().as_nanos())))
    }

    fn note(&self) -> Moment {
        let now = HostClock.now();
        self.0.fetch_max(now.as_nanos(), Ordering::Relaxed);
        now
    }

    fn is_long_ago(&self) -> bool {
        HostClock.now().since(Moment::from_nanos(self.0.load(Ordering::Relaxed))) > STUCK_AFTER
    }
}

/// A lock as one worker sees it.
pub(crate) struct Gate {
    method: Method,
    ground: Ground,
    key: String,
    me: u64,
    leases: Option<(Locks, Wish)>,
    last_entry: LastEntry,
}

/// A worker is inside.
#[derive(Debug)]
pub(crate) struct Pass {
    /// Since when.
    pub(crate) since: Moment,
    hold: Option<Hold>,
}

/// The outcome of leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// No other worker was affected.
    Alone,
    /// The deleted key belonged to another worker.
    FreedAnother,
}

impl Gate {
    /// The gate for the worker with this unique number.
    pub(crate) fn new(method: Method, ground: &Ground, me: u64, last_entry: LastEntry) -> Result<Self, Failure> {
        let leases = match method {
            Method::None | Method::LookThenSet | Method::SetIfAbsent { .. } => None,
            Method::Lease { ttl } => Some((ground.open_locks()?, wish(ground, ttl)?)),
        };
        Ok(Self { method, ground: ground.clone(), key: ground.lock_key(), me, leases, last_entry })
    }

    /// Waits until the worker may enter; `None` if the lock is stuck.
    pub(crate) fn enter(&self, raw: &mut dyn Raw) -> Result<Option<Pass>, Failure> {
        let hold = match &self.leases {
            Some((locks, wish)) => Some(locks.acquire(wish).map_err(never_got)?),
            None => None,
        };
        while !self.try_enter(raw)? {
            if self.last_entry.is_long_ago() {
                return Ok(None);
            }
            thread::sleep(POLL);
        }
        Ok(Some(Pass { since: self.last_entry.note(), hold }))
    }

    fn try_enter(&self, raw: &mut dyn Raw) -> Result<bool, Failure> {
        let _open = self.ground.stay_open();
        match self.method {
            Method::None | Method::Lease { .. } => Ok(true),
            Method::LookThenSet => {
                let free = raw.get(&self.key)?.is_none();
                if free {
                    thread::sleep(LOOK_TO_SET);
                    raw.set(&self.key, self.me)?;
                }
                Ok(free)
            }
            Method::SetIfAbsent { expiry, .. } => raw.set_if_absent(&self.key, self.me, expiry),
        }
    }

    /// Releases the lock.
    pub(crate) fn leave(&self, pass: Pass, raw: &mut dyn Raw) -> Result<Left, Failure> {
        let _open = self.ground.stay_open();
        match self.method {
            Method::None => {}
            Method::LookThenSet | Method::SetIfAbsent { release: Release::Blind, .. } => {
                let freed = raw.delete(&self.key)?;
                return Ok(if freed.is_none_or(|owner| owner == self.me) { Left::Alone } else { Left::FreedAnother });
            }
            Method::SetIfAbsent { release: Release::ByOwner, .. } => {
                raw.compare_and_delete(&self.key, self.me)?;
            }
            Method::Lease { .. } => pass.release(),
        }
        Ok(Left::Alone)
    }
}

impl Pass {
    /// Whether the worker still holds the lock, as far as it can tell.
    pub(crate) fn is_good(&self) -> bool {
        self.hold.as_ref().is_none_or(|hold| hold.lost().is_none())
    }

    /// The fencing token, where there is one.
    pub(crate) fn token(&self) -> Option<FencingToken> {
        self.hold.as_ref().map(Hold::token)
    }

    fn release(self) {
        match self.hold.map(Hold::release) {
            // The library repeats an unanswered release; the next worker waits a little longer.
            None | Some(Parted::Released | Parted::AlreadyLost(_) | Parted::Unknown(_)) => {}
        }
    }
}

fn never_got(failure: Failure) -> Failure {
    if let Exit::Busy(_) = failure.exit {
        let message =
            format!("no worker acquired the lock within {}; check that the store still answers", human(LEASE_WITHIN));
        return Failure::new(Exit::Unavailable, message);
    }
    failure
}

fn wish(ground: &Ground, ttl: Duration) -> Result<Wish, Failure> {
    Ok(Wish {
        name: ground.lock_name()?,
        mode: Mode::Exclusive,
        ttl: Ttl::new(ttl).map_err(|error| Failure::system("the demo's ttl is invalid", error))?,
        why: "leasehold demo".to_owned(),
        patience: Patience::Until(LEASE_WITHIN),
        fairness: Fairness::Fair,
        busy_code: BUSY,
        job: Job::NONE,
    })
}
