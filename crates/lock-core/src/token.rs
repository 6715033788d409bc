//! Fencing tokens: numbers that rise with every turn, for the protected resource to check.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// A number that is higher than that of every earlier holder of the lock.
///
/// The protected resource remembers the highest token it has seen and refuses any lower one. That orders writes: a holder that
/// was paused past its lease cannot write once a later holder's token is there. **Until then its write is accepted**, even if the
/// later holder has already read. So a holder that reads, changes and writes first raises the resource's fence to its token
/// ([`WriteToken`](crate::WriteToken)), and only then reads.
///
/// From 1 to 2^53 - 1, so that it survives JSON, Lua and doubles. SQL has no unsigned integers, so a token also converts to
/// `i64`, without loss:
///
/// ```
/// # use lock_core as leasehold;
/// use leasehold::FencingToken;
///
/// let token = FencingToken::MAX;
/// assert_eq!(FencingToken::try_from(i64::from(token))?, token);
/// # Ok::<(), leasehold::Invalid>(())
/// ```
///
/// # Source
/// M. Kleppmann, "How to do distributed locking" (2016); sequencers in M. Burrows, "The Chubby lock service" (2006).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct FencingToken(NonZeroU64);

impl FencingToken {
    /// The highest token: 2^53 - 1. Counted in microseconds since 1970 it is reached in the year 2255.
    pub const MAX: Self = Self(NonZeroU64::MIN.saturating_add((1 << 53) - 2));

    /// The token with this number, from 1 to [`FencingToken::MAX`].
    ///
    /// # Errors
    /// `Invalid` outside that range.
    pub fn new(number: u64) -> Result<Self, Invalid> {
        let token = NonZeroU64::new(number).map(Self).filter(|token| *token <= Self::MAX);
        token.ok_or_else(|| out_of_range(number))
    }

    /// The number itself, as the resource stores it.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.get()
    }
}

impl TryFrom<u64> for FencingToken {
    type Error = Invalid;

    fn try_from(number: u64) -> Result<Self, Invalid> {
        Self::new(number)
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        token.get().cast_signed() // far below the sign
    }
}

impl TryFrom<i64> for FencingToken {
    type Error = Invalid;

    fn try_from(number: i64) -> Result<Self, Invalid> {
        u64::try_from(number).map_err(|_| out_of_range(number)).and_then(Self::new)
    }
}

fn out_of_range(number: impl fmt::Display) -> Invalid {
    Invalid::new("fencing token", number, "it is not between 1 and 2^53 - 1", "pass on the token of a guard")
}

impl FromStr for FencingToken {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let number = text
            .parse()
            .map_err(|_| Invalid::new("fencing token", text, "it is not a number", "pass on the token of a guard"))?;
        Self::new(number)
    }
}

/// How many tokens a claim asks for: 1 to 64, one for each turn that local waiters may take under the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Width(u8);

impl Width {
    /// One token: one turn.
    pub const ONE: Self = Self(1);
    /// The most tokens that one lease spans.
    pub const MAX: Self = Self(64);

    /// The width for this many local waiters: at least 1, at most 64.
    pub fn for_waiters(count: usize) -> Self {
        let bounded = count.clamp(1, usize::from(Self::MAX.0));
        Self(u8::try_from(bounded).unwrap_or(Self::MAX.0))
    }

    /// The number of tokens.
    pub fn get(self) -> u64 {
        u64::from(self.0)
    }
}

/// The tokens of one lease, from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenRange {
    low: FencingToken,
    high: FencingToken,
}

impl TokenRange {
    /// Takes both ends.
    ///
    /// # Errors
    /// `Invalid` if `high` is below `low`.
    pub fn new(low: FencingToken, high: FencingToken) -> Result<Self, Invalid> {
        if low <= high {
            return Ok(Self { low, high });
        }
        Err(Invalid::new(
            "token range",
            format!("{low}..{high}"),
            "its end is below its beginning",
            "pass on what the store granted",
        ))
    }

    /// The `width` tokens that begin above `last`.
    ///
    /// # Errors
    /// `Invalid` if they would end above [`FencingToken::MAX`].
    pub fn above(last: u64, width: Width) -> Result<Self, Invalid> {
        let low = FencingToken::new(last.saturating_add(1))?;
        let high = FencingToken::new(last.saturating_add(width.get()))?;
        Self::new(low, high)
    }

    /// The first and lowest token.
    pub fn low(self) -> FencingToken {
        self.low
    }

    /// The last and highest token.
    pub fn high(self) -> FencingToken {
        self.high
    }

    /// Whether this token is one of them.
    pub fn contains(self, token: FencingToken) -> bool {
        (self.low..=self.high).contains(&token)
    }

    /// How many tokens it spans; at most [`Width::MAX`].
    pub fn width(self) -> Width {
        let beyond_the_first = self.high.get().saturating_sub(self.low.get());
        Width::for_waiters(usize::try_from(beyond_the_first).unwrap_or(usize::MAX).saturating_add(1))
    }

    /// The token of the `turn`-th turn, counted from 0; `None` when the range is used up.
    pub fn nth(self, turn: u64) -> Option<FencingToken> {
        let token = FencingToken(self.low.0.saturating_add(turn));
        (token <= self.high).then_some(token)
    }
}

impl fmt::Display for TokenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high { self.low.fmt(f) } else { write!(f, "{}..{}", self.low, self.high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_bounded() {
        assert!(FencingToken::new(0).is_err());
        assert_eq!(FencingToken::new(1).unwrap().get(), 1);
        assert_eq!(FencingToken::new((1 << 53) - 1).unwrap(), FencingToken::MAX);
        assert!(FencingToken::new(1 << 53).is_err());
        assert_eq!("17".parse::<FencingToken>().unwrap().get(), 17);
        assert!("x".parse::<FencingToken>().is_err());
        assert_eq!(i64::from(FencingToken::MAX), (1 << 53) - 1);
        assert_eq!(FencingToken::try_from(17_i64).unwrap().get(), 17);
        for number in [i64::MIN, -1, 0, 1 << 53] {
            let text = FencingToken::try_from(number).unwrap_err().to_string();
            assert!(text.contains(&format!("fencing token \"{number}\"")), "{text}");
        }
        assert_eq!(serde_json::to_string(&FencingToken::MAX).unwrap(), "9007199254740991");
        assert!(serde_json::from_str::<FencingToken>("0").is_err());
    }

    #[test]
    fn a_range_is_used_up_token_by_token() {
        let range = TokenRange::above(9, Width::for_waiters(2)).unwrap();
        assert_eq!((range.low().get(), range.high().get()), (10, 11));
        assert_eq!(range.nth(0).map(FencingToken::get), Some(10));
        assert_eq!(range.nth(1).map(FencingToken::get), Some(11));
        assert_eq!(range.nth(2), None);
        assert!(TokenRange::above(FencingToken::MAX.get(), Width::ONE).is_err());
        assert!(TokenRange::new(range.high(), range.low()).is_err());
        assert_eq!(range.to_string(), "10..11");
        assert_eq!(TokenRange::above(4, Width::ONE).unwrap().to_string(), "5");
    }

    #[test]
    fn a_width_never_leaves_its_bounds() {
        assert_eq!(Width::for_waiters(0), Width::ONE);
        assert_eq!(Width::for_waiters(7).get(), 7);
        assert_eq!(Width::for_waiters(1000), Width::MAX);
    }
}
