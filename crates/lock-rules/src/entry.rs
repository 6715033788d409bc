//! A held lock, as operators see it.

use lock_core::LockName;
use lock_core::inspect::Entry;

use crate::rows::{Hold, Rows};

/// Who holds the lock and who waits; `None` if it is free.
///
/// # Errors
/// Those of the rows.
pub fn entry<R: Rows>(rows: &mut R, name: &LockName) -> Result<Option<Entry>, R::Error> {
    let (now, (holds, leases)) = (rows.now(), rows.holds(Entry::SHOWN_MAX)?);
    let Some(last) = holds.first() else { return Ok(None) };
    let (holder, remaining) = (last.holder(), Some(last.until.since(now)));
    let holders = holds.iter().map(|hold: &Hold| hold.shown(now)).collect();
    let (queue, waiters) = rows.waiting(Entry::SHOWN_MAX)?;
    Ok(Some(Entry { name: name.clone(), holder, remaining, leases, holders, waiters, queue }))
}
