//! The contents of a page.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

use humantime::format_rfc3339_millis;
use leasehold::Holder;
use leasehold::inspect::{Entry, is_gone, watch};
use leasehold::kit::Slot;
use serde::{Serialize, Serializer};

/// How many locks a page shows at most. Chosen: more than a person reads, and a page still draws them in a moment.
const LOCKS_MAX: usize = 2000;

/// All that a page shows.
#[derive(Debug, Serialize)]
pub(crate) struct Snapshot<'a> {
    /// When this was written.
    #[serde(serialize_with = "rfc3339")]
    pub(crate) time: SystemTime,
    /// What the store is called.
    pub(crate) store: &'a str,
    pub(crate) pattern: &'a str,
    /// What is shown in place of the remaining time of a lease that has none.
    pub(crate) endless: &'static str,
    /// How long ago the locks were seen; null if they never were.
    pub(crate) age_ms: Option<u64>,
    /// Why the store cannot be read now; null if it can.
    pub(crate) trouble: Option<&'a str>,
    /// How many locks are held, which may be more than are listed.
    pub(crate) held: usize,
    pub(crate) locks: Vec<Lock<'a>>,
    /// The nodes of a quorum; null for another store, or if they could not be asked.
    #[cfg(feature = "redlock")]
    pub(crate) quorum: Option<leasehold::redlock::Report>,
    /// What happened, the latest event first.
    pub(crate) history: Vec<&'a Event>,
}

/// A lock as the library writes it, and what this host and the kit know besides.
#[derive(Debug, Serialize)]
pub(crate) struct Lock<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    /// The tokens of the leases whose process has ended, as far as this host knows.
    gone: Vec<u64>,
    /// The slot of a schedule that it marks.
    marks: Option<String>,
}

/// Something that has happened.
#[derive(Debug, Serialize)]
pub(crate) struct Event {
    /// When it was seen.
    #[serde(serialize_with = "rfc3339")]
    pub(crate) time: SystemTime,
    #[serde(flatten)]
    pub(crate) change: watch::Change,
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_rfc3339_millis(*time))
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The locks; if there are too many, those for which most wait.
pub(crate) fn locks(entries: &[Entry]) -> Vec<Lock<'_>> {
    let mut entries: Vec<_> = entries.iter().collect();
    if entries.len() > LOCKS_MAX {
        entries.sort_by_key(|entry| Reverse(entry.waiters));
    }
    entries.into_iter().take(LOCKS_MAX).map(lock).collect()
}

fn lock(entry: &Entry) -> Lock<'_> {
    let gone = entry.holders.iter().map(|held| &held.holder).filter(|holder| is_gone(holder) == Some(true));
    let gone = gone.filter_map(Holder::tokens).map(|tokens| tokens.high().get()).collect();
    Lock { entry, gone, marks: Slot::marked_by(entry).map(|slot| slot.to_string()) }
}
