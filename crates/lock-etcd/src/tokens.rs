//! Fencing tokens: the order in which the cluster has created the entries.

use std::time::{SystemTime, UNIX_EPOCH};

use lock_core::{FencingToken, Invalid, TokenRange, Width};

/// How many tokens an entry has: as many as a lease spans at most.
const WIDTH: u64 = 64;

/// For how many writes a base that an operator raises has to leave tokens. Chosen: ten thousand a second for three years.
const WRITES_LEFT: u64 = 1_000_000_000_000;

/// What the tokens of a cluster begin at, which is kept in it: the clock when it was first used, so that they rise if it is built anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base(u64);

impl Base {
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        std::str::from_utf8(value).ok()?.trim().parse().ok().map(Self)
    }

    /// A base for a cluster that has none.
    pub(crate) fn of_clock() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
        Self(u64::try_from(now).unwrap_or_default())
    }

    /// A base whose tokens are all above this one.
    pub(crate) fn at(above: FencingToken) -> Self {
        Self(above.get())
    }

    /// Whether all tokens are above this one.
    pub(crate) fn is_at_least(self, above: FencingToken) -> bool {
        self.0 >= above.get()
    }

    /// Whether tokens are left for many writes, at a cluster that has come to this revision.
    pub(crate) fn has_room(self, revision: i64) -> bool {
        self.before(revision).saturating_add(WRITES_LEFT * WIDTH) <= FencingToken::MAX.get()
    }

    pub(crate) fn to_wire(self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }

    /// The tokens of an entry that was created at this revision.
    pub(crate) fn tokens(self, created: i64, width: Width) -> Result<TokenRange, Invalid> {
        TokenRange::above(self.before(created), width)
    }

    fn before(self, created: i64) -> u64 {
        let number = u64::try_from(created).unwrap_or_default();
        self.0.saturating_add(number.saturating_mul(WIDTH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_rise_with_the_revisions_and_do_not_overlap() {
        let base = Base::read(b"1000\n").unwrap();
        let earlier = base.tokens(7, Width::MAX).unwrap();
        assert_eq!((earlier.low().get(), earlier.high().get()), (1000 + 7 * 64 + 1, 1000 + 8 * 64));
        assert!(base.tokens(8, Width::ONE).unwrap().low() > earlier.high());
        assert_eq!(Base::read(b"x"), None);
        assert!(Base(0).tokens(i64::MAX, Width::ONE).is_err());
        assert!(Base(2_000_000_000_000_000).has_room(1_000_000_000_000) && !Base(8_950_000_000_000_000).has_room(7));
    }
}
