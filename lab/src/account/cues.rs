//! What workers learn of each other through the store, so that each stage shows its fault however slow the machine is.
//!
//! A fault needs two workers at a certain point at the same time. Sleeping would make that likely. Instead, the worker that
//! comes first waits until the other one is there. No lock uses any of this.

use std::thread;
use std::time::Duration;

use leasehold::clock::Moment;
use leasehold::clock::{Clock, HostClock};
use serde::{Deserialize, Serialize};

use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::raw::Raw;

/// How long a worker waits for another one: with a lock that works, it may wait in vain.
pub(crate) const AT_MOST: Duration = Duration::from_secs(10);
/// How often the store is asked.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const ENTERED: &str = "cue-entered";
const SECOND: &str = "cue-second";

/// Something that a worker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Did {
    /// It found the lock free, and has not set it yet.
    LookAtLock,
    /// It found the lock taken.
    Wait,
    /// It read the balance, inside the lock.
    Read,
    /// It released the lock.
    Leave,
}

impl Did {
    fn key(self) -> &'static str {
        match self {
            Self::LookAtLock => "cue-look",
            Self::Wait => "cue-wait",
            Self::Read => "cue-read",
            Self::Leave => "cue-leave",
        }
    }
}

/// All keys that cues use.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    [Did::LookAtLock, Did::Wait, Did::Read, Did::Leave].map(Did::key).into_iter().chain([ENTERED, SECOND])
}

/// The cues as one worker sees them.
#[derive(Clone)]
pub(crate) struct Cues {
    ground: Ground,
    me: u64,
}

impl Cues {
    /// The cues for the worker with this number.
    pub(crate) fn new(ground: &Ground, me: u64) -> Self {
        Self { ground: ground.clone(), me }
    }

    /// Tells the others.
    pub(crate) fn tell(&self, raw: &mut dyn Raw, did: Did) -> Result<(), Failure> {
        raw.set(&self.ground.key(did.key()), self.me)
    }

    /// Whether another worker has done it since this one did, or at all if this one has not.
    pub(crate) fn another(&self, raw: &mut dyn Raw, did: Did) -> Result<bool, Failure> {
        Ok(raw.get(&self.ground.key(did.key()))?.is_some_and(|number| number != self.me))
    }

    /// Waits until [`Cues::another`] is true, or until this time has passed.
    pub(crate) fn await_another(&self, raw: &mut dyn Raw, did: Did, at_most: Duration) -> Result<(), Failure> {
        let deadline = HostClock.now() + at_most;
        while HostClock.now() < deadline && !self.another(raw, did)? {
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Whether this is the first worker that asks. The one whose number is 0 does not ask.
    pub(crate) fn is_second(&self, raw: &mut dyn Raw) -> Result<bool, Failure> {
        raw.set_if_absent(&self.ground.key(SECOND), self.me, None)
    }

    /// Notes when a worker entered.
    pub(crate) fn note_entry(&self, raw: &mut dyn Raw, at: Moment) -> Result<(), Failure> {
        raw.set(&self.ground.key(ENTERED), at.as_nanos())
    }

    /// How long ago a worker entered; nothing if none did.
    pub(crate) fn since_last_entry(&self, raw: &mut dyn Raw) -> Result<Duration, Failure> {
        let entered = raw.get(&self.ground.key(ENTERED))?;
        Ok(entered.map_or(Duration::ZERO, |at| HostClock.now().since(Moment::from_nanos(at))))
    }
}
