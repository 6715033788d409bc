//! Naive locks in the store: a key that holds the number of its owner.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cues::{AT_MOST, Cues, Did};
use super::lock::{Attempt, Left, Lock};
use super::mishap::{Before, Mishap};
use super::watchdog::Watchdog;
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::raw::Raw;

/// The key of the lock.
pub(crate) const KEY: &str = "naive-lock";
/// When the first worker's lock expires: it is slow, or suspended.
pub(crate) const EXPIRY: Duration = Duration::from_millis(500);
/// When the locks of the others expire. So the first worker is the only one that is late, however busy the machine is.
const LATER_EXPIRY: Duration = Duration::from_secs(30);
/// The time between the check of a lock and setting it: as long as two requests to a remote store.
const LOOK_TO_SET: Duration = Duration::from_millis(10);

/// How a naive lock works.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Recipe {
    pub(crate) set: Set,
    pub(crate) renew: Renew,
    pub(crate) release: Release,
}

/// How it is acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Set {
    /// Check whether the key exists; if not, set it. Two requests.
    AfterLook,
    /// Set the key if it does not exist, without expiry.
    IfAbsent,
    /// The same, and set the expiry in a second request.
    IfAbsentThenExpiry,
    /// Set the key if it does not exist, with its expiry.
    IfAbsentWithExpiry,
}

/// Whether it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Renew {
    Never,
    /// Its key gets a new expiry, whatever number it holds.
    AnyOwner,
}

/// How it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Release {
    /// By deleting the key.
    Delete,
    /// By reading the key, and deleting it if it is the worker's own. Two requests.
    LookThenDelete,
    /// By deleting the key if it is the worker's own.
    DeleteOwn,
}

/// A naive lock as one worker sees it.
pub(crate) struct NaiveLock {
    recipe: Recipe,
    ground: Ground,
    key: String,
    me: u64,
    cues: Cues,
    has_looked: bool,
    watchdog: Option<Watchdog>,
}

impl NaiveLock {
    /// The lock for the worker with this number.
    pub(crate) fn new(recipe: Recipe, ground: &Ground, me: u64, cues: &Cues) -> Self {
        let (ground, key, cues) = (ground.clone(), ground.key(KEY), cues.clone());
        Self { recipe, ground, key, me, cues, has_looked: false, watchdog: None }
    }

    fn set(&mut self, raw: &mut dyn Raw, mishap: &mut Mishap) -> Result<bool, Failure> {
        match self.recipe.set {
            Set::AfterLook => self.look_then_set(raw),
            Set::IfAbsent => raw.set_if_absent(&self.key, self.me, None),
            Set::IfAbsentWithExpiry => raw.set_if_absent(&self.key, self.me, Some(self.expiry())),
            Set::IfAbsentThenExpiry => {
                let set = raw.set_if_absent(&self.key, self.me, None)?;
                if set {
                    mishap.strike(Before::Expiry)?;
                    raw.renew(&self.key, self.expiry())?;
                }
                Ok(set)
            }
        }
    }

    fn look_then_set(&mut self, raw: &mut dyn Raw) -> Result<bool, Failure> {
        let free = raw.get(&self.key)?.is_none();
        if free {
            self.be_slow_to_set(raw)?;
            raw.set(&self.key, self.me)?;
        }
        Ok(free)
    }

    /// The first time, the first worker waits until another one has looked, too, and the others until a worker is inside.
    fn be_slow_to_set(&mut self, raw: &mut dyn Raw) -> Result<(), Failure> {
        match (self.has_looked, self.me) {
            (true, _) => thread::sleep(LOOK_TO_SET),
            (false, 0) => self.cues.await_another(raw, Did::LookAtLock, AT_MOST)?,
            (false, _) => {
                self.cues.tell(raw, Did::LookAtLock)?;
                self.cues.await_another(raw, Did::Read, AT_MOST)?;
            }
        }
        self.has_looked = true;
        Ok(())
    }

    fn expiry(&self) -> Duration {
        if self.me == 0 { EXPIRY } else { LATER_EXPIRY }
    }

    fn delete(&self, raw: &mut dyn Raw) -> Result<Left, Failure> {
        let deleted = raw.delete(&self.key)?;
        let wrong_deletes = u64::from(deleted.is_some_and(|owner| owner != self.me));
        Ok(Left { wrong_deletes, ..Left::default() })
    }
}

impl Lock for NaiveLock {
    fn try_enter(&mut self, raw: &mut dyn Raw, _: Attempt, mishap: &mut Mishap) -> Result<bool, Failure> {
        let entered = self.set(raw, mishap)?;
        if entered && self.recipe.renew == Renew::AnyOwner {
            self.watchdog = Some(Watchdog::start(self.ground.open_raw()?, &self.key, self.me, self.expiry()));
        }
        Ok(entered)
    }

    fn leave(&mut self, raw: &mut dyn Raw, mishap: &mut Mishap) -> Result<Left, Failure> {
        let wrong_renewals = self.watchdog.take().map_or(Ok(0), Watchdog::stop)?;
        let left = match self.recipe.release {
            Release::Delete => self.delete(raw)?,
            Release::LookThenDelete => {
                let own = raw.get(&self.key)? == Some(self.me);
                mishap.strike(Before::Delete)?;
                if own { self.delete(raw)? } else { Left::default() }
            }
            Release::DeleteOwn => {
                raw.compare_and_delete(&self.key, self.me)?;
                Left::default()
            }
        };
        Ok(Left { wrong_renewals, ..left })
    }

    fn is_good(&self) -> bool {
        self.watchdog.as_ref().is_none_or(Watchdog::is_content)
    }

    fn come_to_check(&mut self, mishap: &mut Mishap) -> Result<(), Failure> {
        match &self.watchdog {
            Some(watchdog) => watchdog.strike(mishap),
            None => mishap.strike(Before::Check).map(drop),
        }
    }
}
