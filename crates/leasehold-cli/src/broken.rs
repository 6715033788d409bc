//! The record that `leasehold break` leaves: an ordinary lock that nobody gets for a while, named after what was broken.
//!
//! By it, the holder's `leasehold run` and `leasehold watch` tell a lease that an operator ended from one that was released. It
//! protects nothing: without it, a break works as well.

use std::time::Duration;

use leasehold::blocking::Guard;
use lock_core::{Ability, FencingToken, Holder, LockName, Ttl};

use crate::exit::Failure;
use crate::locks::Locks;

/// Between the name of the lock and the highest token of the lease.
const INFIX: &str = "@broken:";

/// How long a record is kept at least. Chosen: longer than a holder takes to notice at the default ttl.
const KEPT_MIN: Duration = Duration::from_secs(60);

/// A record that is not kept yet.
pub(crate) struct Record(Guard);

impl Record {
    /// Begins a record, before the lease is ended: so those who miss the lease find the record. `None` if the store cannot keep it.
    ///
    /// `longest` is the longest ttl that the deployment allows, if it has a limit.
    pub(crate) fn begin(
        locks: &Locks,
        name: &LockName,
        token: FencingToken,
        why: &str,
        longest: Option<Ttl>,
    ) -> Option<Self> {
        let client = locks.client();
        client.capabilities().check_ability(Ability::Keep).ok()?;
        let ttl = longest.map_or(KEPT_MIN, |longest| longest.get().min(KEPT_MIN));
        client.mutex(&named(name, token)?).ttl(ttl).why(why).try_acquire().ok().flatten().map(Self)
    }

    /// The lease was ended, which would have lasted for this time.
    pub(crate) fn keep(self, remaining: Option<Duration>) {
        // If this fails, the record is kept for its ttl.
        let _ = self.0.release_keeping(remaining.unwrap_or_default().max(KEPT_MIN));
    }
}

/// Who broke the lease whose highest token this is, if `leasehold break` did.
///
/// # Errors
/// If the store does not answer.
pub(crate) fn broken_by(locks: &Locks, name: &LockName, token: FencingToken) -> Result<Option<Holder>, Failure> {
    let Some(record) = named(name, token) else { return Ok(None) };
    Ok(locks.holder_if_shown(&record)?.map(|entry| entry.holder))
}

/// Whether this is the name of a record.
pub(crate) fn is_record(name: &LockName) -> bool {
    name.as_str().rsplit_once(INFIX).is_some_and(|(_, token)| token.parse::<FencingToken>().is_ok())
}

/// The name of a record; `None` if it would be too long for a name.
fn named(name: &LockName, token: FencingToken) -> Option<LockName> {
    format!("{name}{INFIX}{token}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_known_by_its_name() {
        let name: LockName = "a:b@c".parse().unwrap();
        let record = named(&name, FencingToken::new(7).unwrap()).unwrap();
        assert_eq!(record.as_str(), "a:b@c@broken:7");
        assert!(is_record(&record));
        for other in ["a:b@c", "a@broken:", "a@broken:x", "broken:7"] {
            assert!(!is_record(&other.parse().unwrap()), "{other}");
        }
        assert_eq!(named(&"n".repeat(LockName::BYTES_MAX).parse().unwrap(), FencingToken::new(7).unwrap()), None);
    }
}
