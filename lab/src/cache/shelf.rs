//! The cache: in memory, on a clock that the scene moves.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::blocking::Cache;
use leasehold::clock::Moment;
use leasehold::clock::{Clock, ManualClock};
use leasehold::kit::{Entry, Found};

use crate::shared::failure::Failure;

/// A value, or that there is none.
pub(crate) type Value = Option<u64>;

/// What is done with the answer that there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    Cached,
    NotCached,
}

/// The cache.
pub(crate) struct Shelf {
    clock: ManualClock,
    absent: Absent,
    values: Mutex<HashMap<String, (Value, Moment)>>,
    looks: AtomicU64,
}

impl Shelf {
    pub(crate) fn new(absent: Absent) -> Self {
        Self { clock: ManualClock::new(), absent, values: Mutex::default(), looks: AtomicU64::new(0) }
    }

    /// How often it was looked into.
    pub(crate) fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Lets time pass for what is cached.
    pub(crate) fn wait(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// What is cached, if it has not expired.
    pub(crate) fn find(&self, key: &str) -> Option<Found<Value>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let now = self.clock.now();
        let (value, until) = self.values().get(key).filter(|(_, until)| *until > now).copied()?;
        Some(Found::expiring_in(value, until.since(now)))
    }

    /// Caches a value.
    pub(crate) fn keep(&self, key: &str, value: Value, ttl: Duration) {
        if value.is_some() || self.absent == Absent::Cached {
            self.values().insert(key.to_owned(), (value, self.clock.now() + ttl));
        }
    }

    fn values(&self) -> MutexGuard<'_, HashMap<String, (Value, Moment)>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache for Shelf {
    type Value = Value;
    type Error = Failure;

    fn get(&self, key: &str) -> Result<Option<Found<Value>>, Failure> {
        Ok(self.find(key))
    }

    fn put(&self, entry: Entry<'_, Value>) -> Result<(), Failure> {
        self.keep(entry.key, *entry.value, entry.ttl);
        Ok(())
    }

    fn is_absent(&self, value: &Value) -> bool {
        value.is_none()
    }
}
