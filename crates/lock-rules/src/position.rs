//! The position of a waiter.

use crate::rows::Rows;

/// How many waiters are counted before a place. Chosen: further from the head, a client does not poll more often for being exact.
pub const COUNTED_MAX: u32 = 32;

/// The position of the place with this number, 1 for the next waiter. Far from the head, places that were given up may count.
///
/// # Errors
/// Those of the rows.
pub fn position<R: Rows>(rows: &mut R, number: u64) -> Result<u32, R::Error> {
    let before = rows.places_before(number, COUNTED_MAX)?;
    if before < COUNTED_MAX {
        return Ok(before.saturating_add(1));
    }
    let first = rows.next_place(0)?.map_or(number, |first| first.number);
    let by_number = u32::try_from(number.saturating_sub(first)).unwrap_or(u32::MAX);
    Ok(by_number.max(before).saturating_add(1))
}
