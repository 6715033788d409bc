//! A lock as JSON, for scripts: what the library writes, and what this host and the kit know besides.

use leasehold::inspect::{Entry, Held};
use leasehold::kit::Slot;
use leasehold::{Holder, LockName};
use serde::Serialize;
use serde_json::{Value, json};

use crate::holders::is_gone;

/// One of the leases that hold a lock.
#[derive(Debug, Serialize)]
pub(crate) struct Lease<'a> {
    #[serde(flatten)]
    held: &'a Held,
    /// Whether the holder's process has ended; null if unknown, for instance on another host.
    gone: Option<bool>,
}

impl<'a> From<&'a Held> for Lease<'a> {
    fn from(held: &'a Held) -> Self {
        Self { held, gone: is_gone(&held.holder) }
    }
}

/// A lock as the library writes it, and three fields more: `held`, `gone`, and `marks`, the slot of a schedule that it marks.
pub(crate) fn row(entry: &Entry) -> Value {
    let mut row = json!(entry);
    row["holders"] = entry.holders.iter().map(|held| json!(Lease::from(held))).collect();
    row["held"] = (entry.leases > 0).into();
    row["gone"] = is_gone(&entry.holder).into();
    row["marks"] = Slot::marked_by(entry).map(|slot| slot.to_string()).into();
    row
}

/// A lock that nobody holds.
pub(super) fn free(name: &LockName) -> Value {
    let (name, holder) = (name.clone(), Holder::Foreign);
    let (holders, queue) = (Vec::new(), Vec::new());
    row(&Entry { name, holder, remaining: None, leases: 0, holders, waiters: 0, queue, votes: None })
}
