//! Requests about latches, and their answers.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Invalid, LockName, Ttl};

/// The id of an arrival: 1 to 200 bytes of UTF-8 without control characters. An id counts once in each generation of a latch.
///
/// ```
/// use lock_core::latch::ArrivalId;
///
/// assert_eq!("shard-3".parse::<ArrivalId>()?.as_str(), "shard-3");
/// assert!("".parse::<ArrivalId>().is_err());
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrivalId(Arc<str>);

impl ArrivalId {
    /// The longest id, in bytes. Chosen: enough for any name of a process or a part of the work, and little to store.
    pub const BYTES_MAX: usize = 200;

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ArrivalId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let problem = if text.is_empty() || text.len() > Self::BYTES_MAX {
            "it does not have 1 to 200 bytes"
        } else if text.chars().any(char::is_control) {
            "it contains a control character"
        } else {
            return Ok(Self(text.into()));
        };
        Err(Invalid::new("arrival id", text, problem, "give the name of a process or of a part of the work"))
    }
}

impl fmt::Display for ArrivalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How many arrivals a latch waits for: 1 to 100,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(NonZeroU32);

impl Count {
    /// The highest count. Chosen: a store forgets so many ids within some tens of milliseconds.
    pub const MAX: u32 = 100_000;

    /// Takes a number.
    ///
    /// # Errors
    /// `Invalid` for 0, and for more than [`Count::MAX`].
    pub fn new(count: u32) -> Result<Self, Invalid> {
        match NonZeroU32::new(count) {
            Some(count) if count.get() <= Self::MAX => Ok(Self(count)),
            Some(_) => {
                Err(Invalid::new("latch count", count, "it is more than 100000", "split the work over several latches"))
            }
            None => Err(Invalid::new(
                "latch count",
                count,
                "a latch with a count of 0 would always be open",
                "give 1 or more",
            )),
        }
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl TryFrom<u32> for Count {
    type Error = Invalid;

    fn try_from(count: u32) -> Result<Self, Invalid> {
        Self::new(count)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One use of a latch, from its first request to a reset or the end of its ttl. The store draws a higher number for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// The generation with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, below 2^53.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A request about one latch. Each may be repeated if its outcome is unknown: it takes effect once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which latch. A latch and a lock of the same name have nothing in common.
    pub name: LockName,
    /// What to do.
    pub act: Act,
}

/// What a request asks for. All but a look re-arm the ttl of the latch, but never shorten what is left. One that changes nothing
/// because it names another generation re-arms nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Count an id, unless it was counted in this generation. If the generation is complete, nothing is stored.
    Arrive {
        /// Who arrives.
        id: ArrivalId,
        /// A random number of this call. If the id was counted by the same call in the generation before, this is a repetition
        /// that came after a reset: nothing is counted.
        call: u64,
        /// How long the latch lasts from now.
        ttl: Ttl,
    },
    /// Make the latch if there is none, so that its generation is known.
    Make {
        /// How long the latch lasts from now.
        ttl: Ttl,
    },
    /// Set how many are expected. If another count is set, or the present generation is another one, nothing is changed; the
    /// answer shows it.
    Expect {
        /// How many.
        count: Count,
        /// The generation that it is for.
        generation: Generation,
        /// How long the latch lasts from now.
        ttl: Ttl,
    },
    /// Begin a new generation, without arrivals and count. If the present generation is another one, nothing is changed.
    Reset {
        /// The generation to end.
        generation: Generation,
        /// How long the latch lasts from now.
        ttl: Ttl,
    },
    /// Change nothing.
    Look {
        /// Whether the client wants to be notified.
        watching: Watching,
    },
}

/// Whether a client wants to be notified when a latch is complete, or reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// It asks once.
    Unwanted,
    /// It waits. A store that can push sends it [`StoreEvent::LatchChanged`](crate::StoreEvent::LatchChanged).
    Wanted,
}

/// A latch after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its state; `None` if nothing is stored: nobody has used it yet, or its ttl has expired.
    pub state: Option<LatchState>,
    /// Whether the store will try to notify this client. Only after a look that wants it.
    pub told: bool,
}

/// The state of a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatchState {
    /// The present generation.
    pub generation: Generation,
    /// How many are expected; `None` if nobody has said so yet.
    pub expected: Option<Count>,
    /// How many have arrived. It may exceed the expected number if they arrived before the number was set.
    pub arrived: u32,
    /// The latest generation that was complete when it was reset.
    pub completed: Option<Generation>,
}

impl LatchState {
    /// A new generation.
    pub fn new(generation: Generation) -> Self {
        Self { generation, expected: None, arrived: 0, completed: None }
    }

    /// How many are missing; `None` if nobody has said yet how many are expected.
    pub fn missing(&self) -> Option<u32> {
        self.expected.map(|expected| expected.get().saturating_sub(self.arrived))
    }

    /// Whether all that are expected have arrived.
    pub fn is_complete(&self) -> bool {
        self.missing() == Some(0)
    }

    /// Whether another id can be counted. A latch without a count takes as many as any count may ask for.
    pub fn takes_more(&self) -> bool {
        self.arrived < self.expected.map_or(Count::MAX, Count::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_ids_are_bounded() {
        assert_eq!([1, Count::MAX].map(|count| Count::new(count).unwrap().get()), [1, 100_000]);
        assert!(Count::new(Count::MAX + 1).unwrap_err().to_string().contains("100000"));
        let zero = Count::new(0).unwrap_err();
        assert_eq!((zero.what(), zero.remedy()), ("latch count", "give 1 or more"));
        for bad in ["", "a\nb", &"x".repeat(201)] {
            assert!(bad.parse::<ArrivalId>().is_err(), "{bad:?}");
        }
        assert_eq!("x".repeat(200).parse::<ArrivalId>().unwrap().to_string(), "x".repeat(200));
    }

    #[test]
    fn a_latch_is_complete_only_with_a_count() {
        let mut state = LatchState { arrived: 3, ..LatchState::new(Generation::new(1)) };
        assert_eq!((state.missing(), state.is_complete(), state.takes_more()), (None, false, true));
        for (expected, missing, takes_more) in [(5, 2, true), (3, 0, false), (2, 0, false)] {
            state.expected = Some(Count::new(expected).unwrap());
            assert_eq!(state.missing(), Some(missing), "of {expected}");
            assert_eq!((state.is_complete(), state.takes_more()), (!takes_more, takes_more), "of {expected}");
        }
    }
}
