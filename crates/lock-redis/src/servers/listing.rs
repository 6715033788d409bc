//! How the locks of all servers are listed: in a cluster, one primary after the other. No I/O.
//!
//! There a cursor is `HOST:PORT`, and behind that, after a space, the cursor of that primary unless it has not begun. While hash slots
//! move, a lock may be listed twice, or be missed, as everywhere with `SCAN`.

use std::sync::Arc;

use lock_core::inspect::Cursor;

use crate::address::Address;
use crate::failure::Failure;

/// A primary, and its own cursor.
pub(crate) type Stop = (Arc<Address>, Option<Cursor>);

/// The primary that the next page is from. `None` if there are no more.
pub(crate) fn stop(primaries: &[Arc<Address>], cursor: Option<&Cursor>) -> Result<Option<Stop>, Failure> {
    let Some(Cursor(text)) = cursor else { return Ok(primaries.first().map(|first| (Arc::clone(first), None))) };
    let (address, own) = text.split_once(' ').map_or((text.as_str(), None), |(address, own)| (address, Some(own)));
    let address = Address::read(address).ok_or_else(|| Failure::unsupported("this cursor is not from a cluster"))?;
    // If it is no primary any more, the one after it is next, from its beginning.
    let next = primaries.iter().find(|primary| ***primary >= address);
    Ok(next.map(|next| (Arc::clone(next), own.filter(|_| **next == address).map(|own| Cursor(own.to_owned())))))
}

/// Where to continue after a page of this primary, whose own cursor is this now.
pub(crate) fn after(primaries: &[Arc<Address>], asked: &Address, own: Option<Cursor>) -> Option<Cursor> {
    if let Some(Cursor(own)) = own {
        return Some(Cursor(format!("{asked} {own}")));
    }
    primaries.iter().find(|primary| ***primary > *asked).map(|next| Cursor(next.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primaries() -> Vec<Arc<Address>> {
        ["::1:3", "h1:1", "h1:2"].map(|text| Arc::new(Address::read(text).unwrap())).into()
    }

    fn told(cursor: Option<&str>) -> Option<(String, Option<String>)> {
        let cursor = cursor.map(|text| Cursor(text.to_owned()));
        let stop = stop(&primaries(), cursor.as_ref()).unwrap();
        stop.map(|(address, own)| (address.to_string(), own.map(|Cursor(own)| own)))
    }

    #[test]
    fn pages_come_from_one_primary_after_the_other() {
        let (mut cursor, mut seen) = (None, Vec::new());
        while let Some((address, own)) = stop(&primaries(), cursor.as_ref()).unwrap() {
            let next = own.is_none().then(|| Cursor("17".to_owned()));
            seen.push(format!("{address} {own:?}"));
            cursor = after(&primaries(), &address, next);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
        seen.dedup();
        assert_eq!(seen.len(), 6, "{seen:?}");
    }

    #[test]
    fn a_listing_goes_on_after_a_primary_that_is_gone() {
        assert_eq!(told(Some("h1:1 17")), Some(("h1:1".to_owned(), Some("17".to_owned()))));
        assert_eq!(told(Some("h0:1 17")), Some(("h1:1".to_owned(), None)));
        assert_eq!(told(Some("h1:3 17")), None);
        assert!(stop(&primaries(), Some(&Cursor("17".to_owned()))).is_err());
    }
}
