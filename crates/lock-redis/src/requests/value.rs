//! The value of a held lock: `lh1:OWNER:LOW:HIGH:NOTE`.

use std::time::Duration;

use lock_core::{FencingToken, Holder, Lease, Mode, Note, Owner, Slots, Stamped, TokenRange};
use lock_host::since_1970;

/// How each of our values begins: the layout and its version.
const LAYOUT: &str = "lh1:";

/// How the value of this owner's lease begins, whatever its tokens.
pub(crate) fn of_owner(owner: Owner) -> String {
    [LAYOUT, &owner.to_wire(), ":"].concat()
}

/// How the value of this lease begins.
pub(crate) fn of_lease(lease: &Lease) -> String {
    format!("{}{}", of_owner(lease.owner), of_tokens(lease.tokens))
}

/// A lease that may share its lock, as a renewal names it.
pub(crate) fn of_shared_lease(lease: &Lease) -> String {
    format!("lh2:{}:{}", lease.owner.to_wire(), of_tokens(lease.tokens))
}

pub(crate) fn of_tokens(tokens: TokenRange) -> String {
    format!("{}:{}:", tokens.low(), tokens.high())
}

/// The limit of readers: above that of any semaphore.
const READERS: u32 = i32::MAX.cast_unsigned();

/// How many may hold a lock at a time beside a lease of this mode; 0 for an exclusive one.
pub(crate) fn limit_of(mode: Mode) -> u32 {
    match mode {
        Mode::Exclusive => 0,
        Mode::Permits { limit, .. } => limit.get(),
        Mode::Shared | _ => READERS,
    }
}

/// The mode with this limit that takes so many permits.
pub(crate) fn mode_of(limit: i64, count: i64) -> Option<Mode> {
    match u32::try_from(limit).ok()? {
        0 => Some(Mode::Exclusive),
        READERS => Some(Mode::Shared),
        limit => Mode::permits(u32::try_from(count).ok()?, limit).ok(),
    }
}

/// The same for a lease that is held: its permits may be more than the limit, if that was lowered.
pub(crate) fn held_mode_of(limit: i64, count: i64) -> Option<Mode> {
    match mode_of(limit, 1)?.limit() {
        Some(limit) => mode_of(Mode::LIMIT_MAX.into(), count).map(|permits| permits.under(limit)),
        None => mode_of(limit, count),
    }
}

/// Reads slots, separated by commas; none if there is nothing to read.
pub(crate) fn slots(text: &str) -> Option<Slots> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    Some(Slots::new(numbers.map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()?))
}

/// The contents of one of our values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) owner: Owner,
    pub(crate) tokens: TokenRange,
    pub(crate) note: Stamped,
}

impl Stored {
    /// Reads a value; `None` for one that is not ours.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(value);
        let mut parts = text.strip_prefix(LAYOUT)?.splitn(4, ':');
        let owner = parts.next()?.parse().ok()?;
        let low = token(parts.next()?)?;
        let high = token(parts.next()?)?;
        let note = Stamped::from_wire(parts.next()?);
        Some(Self { owner, tokens: TokenRange::new(low, high).ok()?, note })
    }

    /// Who holds the lock, for display.
    pub(crate) fn holder(value: &[u8]) -> Holder {
        let leasehold = |Self { tokens, note, .. }| Holder::Leasehold { tokens, note: note.note };
        Self::read(value).map_or(Holder::Foreign, leasehold)
    }

    /// How long ago the lease was granted, for display.
    pub(crate) fn age(value: &[u8]) -> Option<Duration> {
        Self::read(value)?.note.age(since_1970())
    }
}

/// The note of a claim: if it is granted, the lease begins now.
pub(crate) fn stamped(note: &Note) -> String {
    Stamped::new(note.clone(), since_1970()).to_wire()
}

pub(crate) fn token(digits: &str) -> Option<FencingToken> {
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use lock_core::Limit;

    use super::*;

    #[test]
    fn a_value_comes_back_and_others_are_foreign() {
        let owner = Owner::from_random([0xab; 16]);
        let value = format!("{}7:9:4711@web-3 nightly: report", of_owner(owner));
        assert_eq!(value, "lh1:abababababababababababababababab:7:9:4711@web-3 nightly: report");
        let stored = Stored::read(value.as_bytes()).unwrap();
        assert_eq!((stored.owner, stored.tokens.to_string().as_str()), (owner, "7..9"));
        assert_eq!(stored.note.note.why(), "nightly: report");
        for foreign in ["", "lh1:", "lh1:abc:1:1:x", "lh2:abababababababababababababababab:7:9:x", "c2VjcmV0"] {
            assert_eq!(Stored::holder(foreign.as_bytes()), Holder::Foreign, "{foreign}");
        }
        for damaged in ["9:7:x", "0:1:x", "1:9007199254740992:x", "1:2", "-1:2:x"] {
            let value = format!("{}{damaged}", of_owner(owner));
            assert_eq!(Stored::read(value.as_bytes()), None, "{damaged}");
        }
        assert_eq!(Stored::holder(b"\xff\xfe"), Holder::Foreign);
    }

    #[test]
    fn a_limit_stands_for_a_mode() {
        let permits = Mode::permits(3, 7).unwrap();
        for (mode, limit, count) in [(Mode::Exclusive, 0, 1), (Mode::Shared, 2_147_483_647, 1), (permits, 7, 3)] {
            assert_eq!((limit_of(mode), mode_of(limit.into(), count)), (limit, Some(mode)));
        }
        assert_eq!((mode_of(-1, 1), mode_of(7, 0), mode_of(7, 8)), (None, None, None));
        assert_eq!(held_mode_of(2, 3), Some(permits.under(Limit::new(2).unwrap())));
        assert_eq!([held_mode_of(2_147_483_647, 0), held_mode_of(7, 65)], [Some(Mode::Shared), None]);
        assert_eq!([slots(""), slots("4,0"), slots("x")], [Some(Slots::NONE), Some(Slots::new([0, 4])), None]);
    }
}
