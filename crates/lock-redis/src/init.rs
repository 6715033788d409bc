//! Declares that a deployment is new, so that its free locks are granted at once.

use std::time::Duration;

use lock_core::inspect::Query;
use lock_core::{BackendError, BlockingInspect, Effect, ErrorKind, Operation};

use crate::blocking::Redis;
use crate::connect::CONNECT_WITHIN;
use crate::{BACKEND, RedisConfig};

/// What it took to make a deployment new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declared {
    /// For how much longer clients with `failover=dwell` would have been granted no free lock; `None` if they were granted them
    /// already.
    pub dwell: Option<Duration>,
    /// The longest ttl of the configuration, which clients with `failover=dwell` may use.
    pub max_ttl: Duration,
}

/// Declares that no lock of this server was ever granted: clients with `failover=dwell` are granted free locks at once.
///
/// A server without data looks like one that has lost its data, so such clients are granted nothing at first. If the server did
/// lose its data, this may give a lock to a second holder. All databases and prefixes of a server have their own locks; this is
/// about one database, with all its prefixes.
///
/// # Errors
/// `Config`, and nothing is changed, if a lock is held or waited for. Otherwise as [`Redis::connect`](crate::blocking::Redis::connect).
///
/// # Blocking
/// For about a second at most for each of a few requests, and for as long as it takes to look at all keys.
pub fn declare_new(config: &RedisConfig) -> Result<Declared, BackendError> {
    let redis = Redis::connect(&config.clone().without_prefix())?;
    let mut query = Query::all();
    loop {
        let page = redis.list(&query, CONNECT_WITHIN)?;
        if let Some(entry) = page.entries.first() {
            let message = format!(
                "the lock \"{}\" is held or waited for, so the server is not new; nothing was changed",
                entry.name
            );
            let remedy = "wait: free locks are granted again once the longest ttl and ten seconds have passed";
            return Err(BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, message)
                .with_remedy(remedy));
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    Ok(Declared { dwell: redis.end_dwell(CONNECT_WITHIN)?, max_ttl: config.failover().longest() })
}
