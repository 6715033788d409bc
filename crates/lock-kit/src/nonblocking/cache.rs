//! A cache of values, for async code.

use std::future::Future;

use crate::single_flight::{Entry, Found};

/// A cache of values, such as Redis, memcached or a table. The locks need not be in the same place.
///
/// # Errors
/// An error of the cache ends the call. If the cache may be unreachable, return `None` from `get` and `Ok` from `put`: then each
/// caller computes, one after the other.
pub trait Cache: Sync {
    /// The value. `Option<T>` for something that may not exist.
    type Value: Send + Sync;
    /// Of the cache, of the computation, and of the lock.
    type Error: From<lock_host::Error> + Send;

    /// The value under a key; `None` if there is nothing, or it has expired.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<Found<Self::Value>>, Self::Error>> + Send;

    /// Keeps a value for its ttl.
    fn put(&self, entry: Entry<'_, Self::Value>) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Whether a value stands for absence, such as `None` for a user who does not exist. It is cached for the
    /// [`absent_ttl`](super::SingleFlight::absent_ttl). `false` for all values if not implemented.
    fn is_absent(&self, _value: &Self::Value) -> bool {
        false
    }
}
