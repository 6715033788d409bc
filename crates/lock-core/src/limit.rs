//! The limit of a semaphore, which can be changed while permits are held and waited for.
//!
//! A claim says which limit it knows. Usually all say the same. After a limit was set, the store keeps a [`Record`] for the name,
//! for [`Record::KEPT_FOR`], whether or not anybody holds:
//!
//! - A claim that says the limit in force, or one that this replaced, is served under the limit in force. Any other is refused.
//! - Nobody loses permits. If the limit was lowered, nothing is granted until no more permits than the limit are taken with
//!   the new ones. Slots that are granted are below the limit in force.
//! - A claim for more permits than that is refused, and loses its place.
//! - A grant states the limit in force, or one that is above all of its slots if the holder has had them for longer.
//!
//! If several set a limit at the same time, the last one wins. Setting it again changes nothing but the time that the record is
//! kept.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{AcquireError, BackendError, Invalid, Limit, LockName, Mode};

/// A request about the limit of one semaphore. Each may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which semaphore.
    pub name: LockName,
    /// The limit that the caller knows. If another one is set, this one is replaced by it.
    pub known: Limit,
    /// What to do.
    pub act: Act,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Put this limit in force, and hand over what is free under it.
    Set(Limit),
    /// Change nothing.
    Look,
}

/// A semaphore at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The limit in force.
    pub limit: Limit,
    /// How many permits are held. More than the limit, if that was lowered.
    pub used: u32,
}

impl Usage {
    /// How many permits nobody holds.
    pub fn available(self) -> u32 {
        self.limit.get().saturating_sub(self.used)
    }
}

/// The record of a limit that was set, as a store keeps it. Its text is the limit in force, and then those that it replaced, the latest first,
/// with spaces in between.
///
/// ```
/// use lock_core::limit::Record;
///
/// let record: Record = "8 4".parse()?;
/// assert_eq!((record.limit().get(), record.to_string().as_str()), (8, "8 4"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    limit: Limit,
    earlier: Vec<Limit>,
}

impl Record {
    /// How many earlier limits are kept at most. Chosen: more than a deployment has versions at a time.
    pub const EARLIER_MAX: usize = 8;

    /// How long it is kept after the limit was set last. Chosen: longer than a rolling deployment takes.
    pub const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// The record after a limit was set: it replaces the limit in use, if anybody holds or waits, that of the record
    /// before, and the one that the caller knew.
    #[must_use]
    pub fn of(limit: Limit, in_use: Option<Limit>, known: Limit, before: Option<&Self>) -> Self {
        let recorded = before.into_iter().flat_map(|record| [record.limit].into_iter().chain(record.earlier.clone()));
        let mut earlier: Vec<Limit> = Vec::new();
        for replaced in in_use.into_iter().chain([known]).chain(recorded) {
            if replaced != limit && !earlier.contains(&replaced) {
                earlier.push(replaced);
            }
        }
        earlier.truncate(Self::EARLIER_MAX);
        Self { limit, earlier }
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Whether a request that knows this limit is served.
    pub fn serves(&self, known: Limit) -> bool {
        known == self.limit || self.earlier.contains(&known)
    }

    /// What a claim of this mode is served as. That of a lock stays what it is.
    ///
    /// # Errors
    /// `OtherKind` for a limit that is not served, and for more permits than the limit in force.
    pub fn apply(&self, backend: &'static str, mode: Mode) -> Result<Mode, BackendError> {
        let Some(known) = mode.limit() else { return Ok(mode) };
        if !self.serves(known) {
            return Err(BackendError::in_other_use(backend, mode.under(self.limit), mode));
        }
        if mode.count() > self.limit.get() {
            return Err(BackendError::above_limit(backend, self.limit, mode.count()));
        }
        Ok(mode.under(self.limit))
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limit.fmt(f)?;
        self.earlier.iter().try_for_each(|earlier| write!(f, " {earlier}"))
    }
}

impl FromStr for Record {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let damaged = || Invalid::new("record of a limit", text, "it is damaged", "set the limit again");
        let limit = |word: &str| Limit::new(word.parse().map_err(|_| damaged())?);
        let mut words = text.split(' ').map(limit);
        Ok(Self { limit: words.next().ok_or_else(damaged)??, earlier: words.collect::<Result<_, _>>()? })
    }
}

/// Why a request about the limit of a semaphore failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The name, an option or a limit is invalid; no request was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store failed, or cannot change limits; or the name is in use as something else. The effect says whether the limit may
    /// have been changed. Asking again is harmless.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// This client was closed with `Client::close`.
    #[error("the client was closed")]
    Closed,
}

impl From<LimitError> for AcquireError {
    fn from(error: LimitError) -> Self {
        match error {
            LimitError::Invalid(error) => error.into(),
            LimitError::Backend(error) => error.into(),
            LimitError::Closed => Self::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn limit(number: u32) -> Limit {
        Limit::new(number).unwrap()
    }

    fn record(text: &str) -> Record {
        text.parse().unwrap()
    }

    #[test]
    fn a_limit_that_is_set_replaces_all_that_were_known() {
        let first = Record::of(limit(8), Some(limit(4)), limit(5), None);
        assert_eq!(first.to_string(), "8 4 5");
        assert_eq!(Record::of(limit(8), Some(limit(8)), limit(4), Some(&first)), record("8 4 5"), "repeated");
        assert_eq!(Record::of(limit(4), Some(limit(8)), limit(8), Some(&first)), record("4 8 5"), "and back");
        let mut many = record("1");
        (2..=20).for_each(|number| many = Record::of(limit(number), None, limit(number), Some(&many)));
        assert_eq!(many, record("20 19 18 17 16 15 14 13 12"));
    }

    #[test]
    fn the_limit_in_use_and_the_one_that_the_caller_knew_are_kept_before_older_ones() {
        let full = record("8 11 12 13 14 15 16 17 18");
        let set = Record::of(limit(1), Some(limit(2)), limit(3), Some(&full));
        assert_eq!(set, record("1 2 3 8 11 12 13 14 15"));
        assert!(set.serves(limit(2)) && set.serves(limit(3)) && !set.serves(limit(18)));
    }

    #[test]
    fn claims_are_served_under_the_limit_in_force() {
        let (record, permits) = (record("2 4"), |count, limit| Mode::permits(count, limit).unwrap());
        assert_eq!(record.apply("test", permits(2, 4)), Ok(permits(2, 2)));
        assert_eq!(record.apply("test", Mode::Shared), Ok(Mode::Shared));
        let refused = |mode| record.apply("test", mode).unwrap_err();
        for (mode, numbers) in [(permits(1, 5), ["limit 2", "limit 5"]), (permits(3, 4), ["is 2", "3 permits"])] {
            let (kind, text) = (refused(mode).kind(), refused(mode).to_string());
            assert!(kind == ErrorKind::OtherKind && numbers.iter().all(|number| text.contains(number)), "{text}");
        }
    }

    #[test]
    fn a_damaged_record_is_told() {
        for text in ["", "0", "4 ", "4 x", "-1"] {
            assert!(text.parse::<Record>().is_err(), "{text:?}");
        }
        assert_eq!(Usage { limit: limit(2), used: 3 }.available(), 0);
    }
}
