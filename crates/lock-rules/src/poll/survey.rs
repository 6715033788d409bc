//! One poll of a lock for its waiters.

use lock_core::{Lease, LockName, Mode, Moment, StoreEvent, Terms};

use super::{Polled, Waiter};
use crate::entry::fits_at;
use crate::position::position;
use crate::rows::{Hold, Place, Rows};

/// Polls a lock for the waiters of one client, and adds the events for them.
///
/// # Errors
/// Those of the rows.
pub fn survey<R: Rows>(rows: &mut R, name: &LockName, waiters: &[&Waiter], found: &mut Polled) -> Result<(), R::Error> {
    let next = rows.next_place(0)?;
    for waiter in waiters {
        let (granted, place) = (granted(rows, waiter, next.is_some())?, rows.place(waiter.owner)?);
        // A waiter that has lost its place learns why by asking.
        let is_gone = granted.is_none() && place.is_none();
        found.events.extend(granted.or_else(|| is_gone.then(|| StoreEvent::Freed { name: name.clone() })));
        let position = place.map(|place| position(rows, place.number)).transpose()?;
        found.positions.push((waiter.owner, position.unwrap_or(0)));
    }
    match prospect(rows, name, next.as_ref(), waiters)? {
        Prospect::Fits => found.events.push(StoreEvent::Freed { name: name.clone() }),
        Prospect::At(time) => found.due = Some(found.due.map_or(time, |due| due.min(time))),
    }
    Ok(())
}

/// The grant that was handed over to a waiter.
fn granted<R: Rows>(rows: &mut R, waiter: &Waiter, has_waiters: bool) -> Result<Option<StoreEvent>, R::Error> {
    let Some(hold) = rows.hold(waiter.owner)? else { return Ok(None) };
    let name = waiter.name.clone();
    if hold.mode.kind() != waiter.terms.mode.kind() {
        // An older program handed it over. Asking again makes it what it should be.
        return Ok(Some(StoreEvent::Freed { name }));
    }
    let Hold { owner, mode, tokens, slots, until, .. } = hold;
    let (terms, wanted) =
        (Terms { mode: mode.covering(&slots), ..waiter.terms }, has_waiters && mode != Mode::Exclusive);
    let lease = Lease { name, owner, tokens, slots, terms };
    Ok(Some(StoreEvent::Granted { lease, valid_for: until.since(rows.now()), wanted }))
}

/// When a lock may be granted next.
enum Prospect {
    /// A waiter of this client would get it now.
    Fits,
    /// Nobody can get it before this time, unless somebody writes.
    At(Moment),
}

fn prospect<R: Rows>(
    rows: &mut R,
    name: &LockName,
    next: Option<&Place<R::Client>>,
    mine: &[&Waiter],
) -> Result<Prospect, R::Error> {
    let Some(next) = next else {
        return Ok(rows.last_hold(None)?.map_or(Prospect::Fits, |last| Prospect::At(last.until)));
    };
    let is_mine = mine.iter().any(|waiter| waiter.owner == next.owner);
    Ok(match (is_mine, fits_at(rows, name, next.terms.mode)?) {
        (true, None) => Prospect::Fits,
        (true, Some(time)) => Prospect::At(time),
        // Only the next waiter asks for the lock. For the others that is useless until its place has expired.
        (false, None) => Prospect::At(next.until),
        (false, Some(time)) => Prospect::At(time.min(next.until)),
    })
}
