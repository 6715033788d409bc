//! A lock as operators and waiters see it.

use lock_core::inspect::Entry;
use lock_core::{LockName, Mode, Moment};

use crate::plan::Plan;
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

/// When a lease of this mode fits beside the present ones at the earliest, unless they are renewed; `None` if it fits now. For
/// stores whose clients poll.
///
/// # Errors
/// Those of the rows.
pub fn fits_at<R: Rows>(rows: &mut R, name: &LockName, mode: Mode) -> Result<Option<Moment>, R::Error> {
    Plan::new(rows, name)?.fits_at(mode)
}
