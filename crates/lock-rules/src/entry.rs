//! A lock as operators and waiters see it.

use lock_core::inspect::{Entry, Waiter};
use lock_core::{LockName, Mode, Moment};

use crate::plan::Plan;
use crate::rows::{Hold, Rows};

/// Who holds the lock and who waits; `None` if it is free. Takes the first leases, those that end last first, and the first waiters,
/// in their order: at most [`Entry::SHOWN_MAX`] of each, with the number of all.
pub fn entry(
    now: Moment,
    name: &LockName,
    (holds, leases): (Vec<Hold>, u32),
    (queue, waiters): (Vec<Waiter>, u32),
) -> Option<Entry> {
    let last = holds.first()?;
    let (holder, remaining) = (last.holder(), Some(last.until.since(now)));
    let holders = holds.iter().map(|hold| hold.shown(now)).collect();
    Some(Entry { name: name.clone(), holder, remaining, leases, holders, waiters, queue, votes: None })
}

/// When a lease of this mode fits beside the present ones at the earliest, unless they are renewed; `None` if it fits now. For
/// stores whose clients poll.
///
/// # Errors
/// Those of the rows.
pub fn fits_at<R: Rows>(rows: &mut R, name: &LockName, mode: Mode) -> Result<Option<Moment>, R::Error> {
    Plan::new(rows, name)?.fits_at(mode)
}
