//! Values in a cache.

use std::time::Duration;

use lock_core::FencingToken;

/// A value that was found in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<V> {
    /// The value.
    pub value: V,
    /// For how long the cache will keep it; `None` if the cache does not report that. Only `stale_for` needs it: without it, no value is
    /// stale.
    pub left: Option<Duration>,
}

impl<V> Found<V> {
    /// A value from a cache that does not report for how long it will keep it.
    pub fn new(value: V) -> Self {
        Self { value, left: None }
    }

    /// A value that the cache will keep for this long.
    pub fn expiring_in(value: V, left: Duration) -> Self {
        Self { value, left: Some(left) }
    }
}

/// A value for a cache.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry<'a, V> {
    /// Under which key.
    pub key: &'a str,
    /// The value.
    pub value: &'a V,
    /// For how long, a millisecond or more. `stale_for` is included.
    pub ttl: Duration,
    /// The fencing token of the lease under which the value was computed: higher than those of all earlier computations. A cache
    /// that can check it refuses a value that arrives late.
    pub token: FencingToken,
}
