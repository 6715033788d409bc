//! Options of a lock.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use lock_core::station::LongWaits;
use lock_core::{Fairness, Invalid, Mode, Moment, Note, OnUnavailable, Patience, Ttl, human_duration};

use crate::cancel::CancelToken;

/// The shortest `max_hold`: a shorter one would most likely end before the waiter is even notified of its turn.
const MAX_HOLD_MIN: Duration = Duration::from_millis(1);

/// One change of options: what a setter does, whatever type it belongs to.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Setting {
    /// All options are replaced.
    Options(LockOptions),
    Ttl(Duration),
    Wait(Duration),
    MaxRequests(u32),
    OnUnavailable(OnUnavailable),
    Fairness(Fairness),
    Why(String),
    MaxHold(Duration),
    CancelledBy(CancelToken),
}

/// How a lock is requested and held.
///
/// Use the setters, which take what those of a lock take; `barging` and `fair` are for readers and permits only. An invalid value is an error
/// of the acquire.
/// Reading options from a configuration refuses invalid values and unknown fields.
///
/// ```
/// # use lock_host as leasehold;
/// use std::time::Duration;
/// use leasehold::LockOptions;
///
/// let options = LockOptions::default().ttl(Duration::from_secs(10)).wait(Duration::from_secs(5)).why("nightly");
/// let read: LockOptions = serde_json::from_str(r#"{ "ttl": "10s", "wait": "5s", "why": "nightly" }"#)?;
/// assert_eq!(options, read);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(description = "How a lock is requested and held."))]
#[serde(default, deny_unknown_fields)]
#[must_use = "options do nothing until a lock is acquired with them"]
#[non_exhaustive]
pub struct LockOptions {
    /// How long the store keeps the lease when nobody renews it. The default is 30 s. The client renews the lease
    /// whatever the ttl is.
    pub ttl: Ttl,
    /// How long to wait for the lock; if not set, for as long as it takes. A job does not wait if it is not set.
    #[serde(with = "human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::HumanDuration>"))]
    pub wait: Option<Duration>,
    /// How often an acquire asks the store, at most; if not set, as often as the wait takes.
    #[serde(deserialize_with = "read_max_requests")]
    #[cfg_attr(feature = "schema", schemars(extend("maximum" = u32::MAX)))]
    pub max_requests: Option<NonZeroU32>,
    /// While the store is unreachable: `fail`, which is the default, or `wait`.
    pub on_unavailable: OnUnavailable,
    /// Whether it waits behind all earlier waiters: `fair`, which is the default, or `barging`.
    pub fairness: Fairness,
    /// Why the lock is held, shown to waiters and operators: one line of at most 200 bytes.
    #[serde(deserialize_with = "read_why")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200), extend("pattern" = r"^[^\u0000-\u001f\u007f-\u009f]*$")))]
    pub why: String,
    /// How long the lock is held at most, renewals included: a millisecond or more; if not set, there is no limit.
    #[serde(serialize_with = "human_duration::option::serialize", deserialize_with = "read_max_hold")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    pub max_hold: Option<Duration>,
    /// Whether a long wait is reported to observers.
    #[serde(skip)]
    #[doc(hidden)]
    pub long_waits: LongWaits,
    /// What ends the wait early.
    #[serde(skip)]
    pub(crate) cancel: Option<CancelToken>,
    /// The first change that failed. Boxed, because there usually is none.
    #[serde(skip)]
    mistake: Option<Box<Invalid>>,
}

impl LockOptions {
    crate::option_setters!(each);

    crate::option_setters!(on_unavailable);

    crate::option_setters!(fairness);

    fn set(mut self, setting: Setting) -> Self {
        self.apply(setting);
        self
    }

    /// Changes the options. The first change that fails is what [`validate`](Self::validate) reports.
    #[doc(hidden)]
    pub fn apply(&mut self, setting: Setting) {
        match setting {
            Setting::Options(options) => *self = options,
            Setting::Ttl(ttl) => match Ttl::new(ttl) {
                Ok(ttl) => self.ttl = ttl,
                Err(invalid) => self.refuse(invalid),
            },
            Setting::Wait(wait) => self.wait = Some(wait),
            Setting::MaxRequests(most) => match checked_max_requests(most) {
                Ok(most) => self.max_requests = Some(most),
                Err(invalid) => self.refuse(invalid),
            },
            Setting::OnUnavailable(on_unavailable) => self.on_unavailable = on_unavailable,
            Setting::Fairness(fairness) => self.fairness = fairness,
            Setting::Why(why) => self.why = why,
            Setting::MaxHold(max_hold) => self.max_hold = Some(max_hold),
            Setting::CancelledBy(token) => self.cancel = Some(token),
        }
    }

    /// Has [`validate`](Self::validate) report this, unless it reports something already.
    #[doc(hidden)]
    pub fn refuse(&mut self, invalid: Invalid) {
        self.mistake.get_or_insert_with(|| Box::new(invalid));
    }

    /// Waits as a candidate of an election does: for as long as another one leads, which is nothing to report.
    #[doc(hidden)]
    pub fn standing_by(mut self) -> Self {
        self.long_waits = LongWaits::Expected;
        self
    }

    /// Refuses options with which no lock can be held.
    ///
    /// # Errors
    /// `Invalid` for the first change that failed, and for a `max_hold` under a millisecond.
    pub fn validate(&self) -> Result<(), Invalid> {
        if let Some(mistake) = &self.mistake {
            return Err(Invalid::clone(mistake));
        }
        self.max_hold.map_or(Ok(()), check_max_hold)
    }

    /// Refuses options that mean nothing in this mode.
    pub(crate) fn validate_for(&self, mode: Mode) -> Result<(), Invalid> {
        match (mode, self.fairness) {
            (Mode::Exclusive, Fairness::Barging) => Err(Invalid::new(
                "fairness",
                "barging",
                "a lock that is held alone goes to its first waiter, so there is nobody to pass",
                "leave it out, or set it for readers and permits only",
            )),
            _ => self.validate(),
        }
    }

    /// The patience of a waiter that begins to wait now. The clock is read only for a wait that ends.
    #[doc(hidden)]
    pub fn patience(&self, now: impl FnOnce() -> Moment) -> Patience {
        match self.wait {
            None => Patience::Forever,
            Some(Duration::ZERO) => Patience::Never,
            Some(wait) => Patience::within(now(), wait),
        }
    }
}

fn checked_max_requests(most: u32) -> Result<NonZeroU32, Invalid> {
    NonZeroU32::new(most).ok_or_else(|| {
        Invalid::new("max_requests", most, "the store could not be asked", "give 1 or more, or leave it out")
    })
}

fn check_max_hold(most: Duration) -> Result<(), Invalid> {
    if most >= MAX_HOLD_MIN {
        return Ok(());
    }
    Err(Invalid::new(
        "max_hold",
        humantime::format_duration(most),
        "it is less than 1ms, which is too short for any work",
        "give a longer duration, or leave it out",
    ))
}

fn read_max_requests<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU32>, D::Error> {
    let most = Option::<u32>::deserialize(deserializer)?;
    most.map(checked_max_requests).transpose().map_err(D::Error::custom)
}

fn read_why<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let why = String::deserialize(deserializer)?;
    Note::check_why(&why).map_err(D::Error::custom)?;
    Ok(why)
}

fn read_max_hold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let most = human_duration::option::deserialize(deserializer)?;
    most.map_or(Ok(()), check_max_hold).map_err(D::Error::custom)?;
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_refused() {
        let refusal = serde_json::from_str::<LockOptions>(r#"{ "tll": "10s" }"#).unwrap_err();
        assert!(refusal.to_string().contains("unknown field `tll`"), "{refusal}");
        assert_eq!(serde_json::from_str::<LockOptions>("{}").unwrap(), LockOptions::default());
    }

    #[test]
    fn options_have_a_human_form() {
        let options = LockOptions::default().ttl(Duration::from_secs(10)).wait(Duration::from_secs(5));
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(
            text,
            r#"{"ttl":"10s","wait":"5s","max_requests":null,"on_unavailable":"fail","fairness":"fair","why":"","max_hold":null}"#
        );
    }

    #[test]
    fn the_first_mistake_of_a_setter_is_told() {
        let options = LockOptions::default().ttl(Duration::ZERO).ttl(Duration::MAX).max_hold(Duration::ZERO);
        assert_eq!(options.validate().unwrap_err(), Ttl::new(Duration::ZERO).unwrap_err());
        assert_eq!(options.ttl(Duration::from_secs(1)).validate().unwrap_err(), Ttl::new(Duration::ZERO).unwrap_err());
    }

    #[test]
    fn one_request_is_the_least() {
        let read = |text| serde_json::from_str::<LockOptions>(text);
        assert_eq!(read(r#"{ "max_requests": 3 }"#).unwrap(), LockOptions::default().max_requests(3));
        assert!(read(r#"{ "max_requests": 0 }"#).is_err());
        let text = LockOptions::default().max_requests(0).validate().unwrap_err().to_string();
        assert_eq!(
            text,
            "max_requests \"0\" is not valid: the store could not be asked; give 1 or more, or leave it out"
        );
    }

    #[test]
    fn options_are_checked_while_they_are_read() {
        let refusal = |text| serde_json::from_str::<LockOptions>(text).unwrap_err().to_string();
        let short = LockOptions::default().max_hold(Duration::ZERO).validate().unwrap_err().to_string();
        assert!(refusal(r#"{ "max_hold": "0s" }"#).contains(&short));
        let none = LockOptions::default().max_requests(0).validate().unwrap_err().to_string();
        assert!(refusal(r#"{ "max_requests": 0 }"#).contains(&none));
        let broken = Note::new("h", 1, "a\nb").unwrap_err().to_string();
        assert!(refusal(r#"{ "why": "a\nb" }"#).contains(&broken));
        assert!(refusal(r#"{ "ttl": 30 }"#).contains("expected a duration such as \"30s\""));
        assert!(refusal(r#"{ "max_hold": 30 }"#).contains("expected a duration such as \"30s\""));
    }

    #[test]
    fn patience_counts_from_now() {
        let now = Moment::from_nanos(5);
        assert_eq!(LockOptions::default().patience(|| now), Patience::Forever);
        let options = LockOptions::default().wait(Duration::from_nanos(2));
        assert_eq!(options.patience(|| now), Patience::Until { since: now, end: Moment::from_nanos(7) });
        let options = LockOptions::default().wait(Duration::ZERO);
        assert_eq!(options.patience(|| now), Patience::Never);
    }

    #[test]
    fn a_hold_of_no_length_is_refused() {
        let validated = |most| LockOptions::default().max_hold(Duration::from_micros(most)).validate();
        assert!(validated(0).is_err());
        let text = validated(999).unwrap_err().to_string();
        assert!(
            text.contains("max_hold \"999us\"") && text.ends_with("give a longer duration, or leave it out"),
            "{text}"
        );
        assert!(validated(1_000).is_ok());
        assert!(LockOptions::default().validate().is_ok());
    }
}
