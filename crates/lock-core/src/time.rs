//! Time as the core sees it: instants that the caller reads from a clock, and durations.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::Invalid;

/// An instant on this client's clock, which never runs backwards and counts suspend.
///
/// Nanoseconds since an origin that only this host knows: two machines' moments are never compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(
    /// One more than the nanoseconds since the origin, so that an optional moment takes no more memory. There may be many.
    NonZeroU64,
);

impl Moment {
    /// The origin of the clock.
    pub const ORIGIN: Self = Self::from_nanos(0);

    /// The moment this many nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// The time from `earlier` to this moment; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.as_nanos().saturating_sub(earlier.as_nanos()))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Later by `duration`, or the end of time where that would overflow (after 584 years).
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    /// Earlier by `duration`, at most back to the origin.
    fn sub(self, duration: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// How long a store is asked to keep a lease: whole milliseconds, from 100 ms to 365 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct Ttl(u64);

impl Ttl {
    /// The shortest ttl. Chosen: below it, drift and one slow request leave nothing to work with.
    pub const MIN: Self = Self(100);
    /// The longest ttl: 365 days. Renewal makes long ttls unnecessary.
    pub const MAX: Self = Self(365 * 24 * 60 * 60 * 1000);
    /// The default: 30 s.
    pub const DEFAULT: Self = Self(30_000);

    /// Takes a duration, rounded down to whole milliseconds.
    ///
    /// # Errors
    /// `Invalid` outside the range from [`Ttl::MIN`] to [`Ttl::MAX`].
    pub fn new(duration: Duration) -> Result<Self, Invalid> {
        match u64::try_from(duration.as_millis()) {
            Ok(millis) if (Self::MIN.0..=Self::MAX.0).contains(&millis) => Ok(Self(millis)),
            _ => {
                let given = humantime::format_duration(duration);
                Err(Invalid::new(
                    "ttl",
                    given,
                    "it is not between 100ms and 365 days",
                    "give a duration such as 30s; renewal keeps a lease longer than its ttl",
                ))
            }
        }
    }

    /// The ttl as a duration.
    pub fn get(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The ttl in milliseconds, for the wire.
    pub fn as_millis(self) -> u64 {
        self.0
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.get()).fmt(f)
    }
}

impl FromStr for Ttl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(parse_duration("ttl", text)?)
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = Invalid;

    fn try_from(duration: Duration) -> Result<Self, Invalid> {
        Self::new(duration)
    }
}

impl From<Ttl> for Duration {
    fn from(ttl: Ttl) -> Self {
        ttl.get()
    }
}

impl TryFrom<String> for Ttl {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let duration = deserializer.deserialize_str(human_duration::Text("ttl"))?;
        Self::new(duration).map_err(serde::de::Error::custom)
    }
}

impl From<Ttl> for String {
    fn from(ttl: Ttl) -> Self {
        ttl.to_string()
    }
}

/// Parses a duration such as `30s`, `5m` or `1h 30m`.
///
/// # Errors
/// `Invalid`, which calls the input `what`.
pub fn parse_duration(what: &'static str, text: &str) -> Result<Duration, Invalid> {
    humantime::parse_duration(text.trim()).map_err(|_| {
        Invalid::new(what, text, "it is not a duration", "give a number with a unit, such as 500ms, 30s or 5m")
    })
}

/// Rounds a limit to whole milliseconds, at least one, for a message.
///
/// The remainder of a limit at the time of use has odd microseconds; this shows it as a user would have written it.
pub fn to_the_millisecond(limit: Duration) -> Duration {
    let millis = limit.saturating_add(Duration::from_micros(500)).as_millis();
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX).max(1))
}

/// A serde form for durations that users write: `#[serde(with = "lock_core::human_duration")]`.
pub mod human_duration {
    use std::fmt;
    use std::time::Duration;

    use serde::de::{Error, Visitor};
    use serde::{Deserialize, Deserializer, Serializer};

    /// Text that is a duration, and what it is called in errors.
    pub(super) struct Text(pub(super) &'static str);

    impl Visitor<'_> for Text {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration such as \"30s\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            super::parse_duration(self.0, text).map_err(E::custom)
        }
    }

    /// Writes `30s`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*duration))
    }

    /// Reads `30s`.
    ///
    /// # Errors
    /// Text that is not a duration.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        deserializer.deserialize_str(Text("duration"))
    }

    /// The same for a duration that may be absent: `#[serde(default, with = "lock_core::human_duration::option")]`.
    pub mod option {
        use super::{Deserialize, Deserializer, Duration, Serializer};

        /// A duration that is there.
        struct Present(Duration);

        impl<'de> Deserialize<'de> for Present {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                super::deserialize(deserializer).map(Self)
            }
        }

        /// Writes `30s`, or nothing.
        ///
        /// # Errors
        /// Those of the serializer.
        pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
            match duration {
                Some(duration) => super::serialize(duration, serializer),
                None => serializer.serialize_none(),
            }
        }

        /// Reads `30s`, or nothing.
        ///
        /// # Errors
        /// Text that is not a duration.
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<Present>::deserialize(deserializer)?.map(|Present(duration)| duration))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate_instead_of_wrapping() {
        let later = Moment::ORIGIN + Duration::from_secs(2);
        assert_eq!(later.since(Moment::ORIGIN), Duration::from_secs(2));
        assert_eq!(Moment::ORIGIN.since(later), Duration::ZERO);
        assert_eq!(Moment::ORIGIN - Duration::from_secs(1), Moment::ORIGIN);
        assert_eq!(Moment::from_nanos(u64::MAX) + Duration::MAX, Moment::from_nanos(u64::MAX));
        assert_eq!(later - Duration::from_secs(1), Moment::from_nanos(1_000_000_000));
    }

    #[test]
    fn ttls_are_bounded_and_rounded_down() {
        assert_eq!(Ttl::new(Duration::from_micros(100_900)).unwrap().as_millis(), 100);
        assert!(Ttl::new(Duration::ZERO).is_err());
        assert!(Ttl::new(Duration::from_micros(99_999)).is_err());
        assert_eq!(Ttl::new(Ttl::MAX.get()).unwrap(), Ttl::MAX);
        assert!(Ttl::new(Ttl::MAX.get() + Duration::from_millis(1)).is_err());
        assert!(Ttl::new(Duration::MAX).is_err());
        assert_eq!("1m 30s".parse::<Ttl>().unwrap().to_string(), "1m 30s");
        assert!("soon".parse::<Ttl>().is_err());
    }

    #[test]
    fn a_limit_is_shown_in_whole_milliseconds() {
        for (micros, millis) in [(0, 1), (499, 1), (1_499, 1), (1_500, 2), (2_999_800, 3_000)] {
            assert_eq!(to_the_millisecond(Duration::from_micros(micros)), Duration::from_millis(millis), "{micros}us");
        }
        assert_eq!(to_the_millisecond(Duration::MAX), Duration::from_millis(u64::MAX));
    }

    #[test]
    fn durations_have_a_human_serde_form() {
        #[derive(Serialize, Deserialize, PartialEq, Debug)]
        struct Both {
            #[serde(with = "human_duration")]
            one: Duration,
            #[serde(default, with = "human_duration::option")]
            two: Option<Duration>,
            ttl: Ttl,
        }
        let text = r#"{"one":"1s 500ms","two":"2m","ttl":"45s"}"#;
        let both: Both = serde_json::from_str(text).unwrap();
        assert_eq!(
            both,
            Both { one: Duration::from_millis(1500), two: Some(Duration::from_secs(120)), ttl: Ttl(45_000) }
        );
        assert_eq!(serde_json::to_string(&both).unwrap(), text);
        assert!(serde_json::from_str::<Both>(r#"{"one":"x","ttl":"30s"}"#).is_err());
        for (field, other) in [("one", "\"ttl\":\"1s\""), ("two", "\"ttl\":\"1s\""), ("ttl", "\"one\":\"1s\"")] {
            let refused =
                serde_json::from_str::<Both>(&format!(r#"{{{other},"{field}":30}}"#)).unwrap_err().to_string();
            assert!(refused.contains("expected a duration such as \"30s\""), "{field}: {refused}");
        }
    }
}
