//! A caller: it wants a value, from the cache if possible.

use std::time::Duration;

use leasehold::blocking::{Client, Kit};

use super::shelf::{Shelf, Value};
use crate::shared::failure::Failure;

/// For how long a value is cached.
pub(crate) const VALUE_TTL: Duration = Duration::from_secs(60);
/// For how long it may be used after that.
pub(crate) const STALE_FOR: Duration = Duration::from_secs(30);
/// How long a caller waits: only an unreachable store takes as long.
const WITHIN: Duration = Duration::from_secs(60);

/// How a caller gets a value that it misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// It calls the database.
    NoLock,
    /// It acquires a lock, and calls the database.
    OneLook,
    /// Single flight.
    SingleFlight,
    /// Single flight, with an old value in the meantime.
    Stale,
    /// Single flight, and each ttl is shortened at random, by this much at most.
    Jitter(u8),
}

/// A caller with its own client, as if it were alone on its machine.
pub(crate) struct Caller<'a> {
    pub(crate) locks: Client,
    pub(crate) method: Method,
    pub(crate) shelf: &'a Shelf,
}

impl Caller<'_> {
    /// Gets the value under a key.
    pub(crate) fn get(&self, key: &str, compute: impl Fn() -> Value) -> Result<Value, Failure> {
        let (stale_for, jitter_percent) = match self.method {
            Method::NoLock | Method::OneLook => return self.get_without(key, compute),
            Method::SingleFlight => (Duration::ZERO, 0),
            Method::Stale => (STALE_FOR, 0),
            Method::Jitter(percent) => (Duration::ZERO, percent),
        };
        let flight = self.locks.single_flight(key).value_ttl(VALUE_TTL).stale_for(stale_for);
        let flight = flight.jitter_percent(jitter_percent).wait(WITHIN).why("leasehold lab");
        flight.get_or_compute(self.shelf, || Ok(compute()))
    }

    /// The same without single flight.
    fn get_without(&self, key: &str, compute: impl Fn() -> Value) -> Result<Value, Failure> {
        if let Some(found) = self.shelf.find(key) {
            return Ok(found.value);
        }
        let lock = self.locks.mutex(key).wait(WITHIN).why("leasehold lab");
        let guard = match self.method {
            Method::OneLook => Some(lock.acquire()?),
            Method::NoLock | Method::SingleFlight | Method::Stale | Method::Jitter(_) => None,
        };
        let value = compute();
        self.shelf.keep(key, value, VALUE_TTL);
        // If the store does not confirm that, the client repeats it, and the next caller waits a little longer.
        _ = guard.map(leasehold::blocking::Guard::release);
        Ok(value)
    }
}
