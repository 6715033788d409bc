//! The slots of a job: the times for which it runs.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use lock_core::inspect::Entry;
use lock_core::{Invalid, Note, Ttl};

const WHAT: &str = "slot of a job";
const REMEDY: &str =
    "give the time at which the schedule calls for the run, such as 2026-11-21T03:00 (UTC) or 2026-11-21T03:00+01:00";

/// How the reason of a job begins that runs for a slot.
const WHY: &str = "slot ";

/// For how much longer a slot is remembered than it is accepted. Chosen: clocks that are wrong by more than a day are noticed.
const CLOCKS_DIFFER: Duration = Duration::from_secs(24 * 60 * 60);

/// No lease on a mark lasts for longer, so that what lasts for longer is kept.
const LEASE_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// The scheduled time of one run of a job, not the time at which the run begins. All machines have to name the same time.
///
/// As text, a slot is a time with an offset, or without one for UTC, or a date for its first second. It is shown in UTC.
///
/// ```
/// # mod leasehold { pub use lock_kit as kit; }
/// use leasehold::kit::Slot;
///
/// let slot: Slot = "2026-11-21T03:00".parse()?;
/// assert_eq!(slot, "2026-11-21T04:00+01:00".parse()?);
/// assert_eq!(slot.to_string(), "2026-11-21T03:00:00Z");
/// assert!("three o'clock".parse::<Slot>().is_err());
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(Timestamp);

impl Slot {
    /// The slot of a time.
    ///
    /// # Errors
    /// `Invalid` for a time with a fraction of a second: that is a reading of a clock, which differs between machines, and not a time of a
    /// schedule. Also for times before the year -9999 and after 9999.
    pub fn at(time: SystemTime) -> Result<Self, Invalid> {
        match Timestamp::try_from(time) {
            Ok(time) => Self::new(time),
            Err(_) => Err(Invalid::new(WHAT, format!("{time:?}"), "its year has more than four digits", REMEDY)),
        }
    }

    fn new(time: Timestamp) -> Result<Self, Invalid> {
        if time.subsec_nanosecond() == 0 {
            return Ok(Self(time));
        }
        Err(Invalid::new(WHAT, time, "it has a fraction of a second", REMEDY))
    }

    /// The time.
    pub fn time(self) -> SystemTime {
        self.0.into()
    }

    /// Why the lock of a job is held that runs for this slot: the slot, and what the job says. So others see which slot runs. A
    /// long reason is cut.
    pub(crate) fn why(self, why: &str) -> String {
        let mut text = format!("{WHY}{self}");
        if !why.is_empty() {
            text.push_str(": ");
            text.push_str(why);
        }
        while text.len() > Note::WHY_BYTES_MAX {
            text.pop();
        }
        text
    }

    /// The slot that such a reason names, and what the job says.
    pub(crate) fn of_why(why: &str) -> Option<(Self, &str)> {
        let reason = why.strip_prefix(WHY)?;
        let (slot, why) = reason.split_once(": ").unwrap_or((reason, ""));
        Some((slot.parse().ok()?, why))
    }

    /// The slot that a lock marks as run, from the store's listing; `None` if it marks none, or is only held by a run that may
    /// still leave the slot free.
    pub fn marked_by(lock: &Entry) -> Option<Self> {
        // A mark lasts for as long as clocks may differ, after the last moment at which its slot is accepted.
        let is_kept = lock.remaining.is_some_and(|left| left > LEASE_MAX);
        let (_, slot) = lock.name.as_str().rsplit_once('@')?;
        slot.parse().ok().filter(|parsed: &Self| is_kept && parsed.to_string() == slot)
    }

    /// The slot this much earlier, if there is one.
    pub(crate) fn earlier(self, by: Duration) -> Option<Self> {
        self.time().checked_sub(by).and_then(|time| Self::at(time).ok())
    }
}

impl FromStr for Slot {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = |problem: &str| Invalid::new(WHAT, text, problem, REMEDY);
        // The parser of local times would ignore the zone.
        if text.contains('[') {
            return Err(refuse("it names a time zone"));
        }
        let in_utc =
            || text.parse::<DateTime>().and_then(|time| time.to_zoned(TimeZone::UTC)).map(|time| time.timestamp());
        let time = text.parse::<Timestamp>().or_else(|_| in_utc()).map_err(|_| refuse("it is not a time"))?;
        Self::new(time)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The mark of a slot that has run: a lock that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The name of the lock: that of the job, `@`, and the slot.
    pub(crate) name: String,
    /// For how long it is kept.
    pub(crate) keep: Duration,
}

impl Mark {
    /// How long slots are remembered if nothing else is set. Chosen: longer than a machine is usually off, or a queue of jobs
    /// is usually stuck.
    pub(crate) const RETAIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// How long the first slot of a job is remembered after its mark was last set. Chosen: the longest ttl.
    pub(crate) const FIRST_KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

    /// The mark of a slot. `now` is read from this machine's clock, and only decides whether the slot is too old.
    ///
    /// # Errors
    /// `Invalid` if the slot is older than `retain`: whether it has run may be forgotten.
    pub(crate) fn of(job: &str, slot: Slot, retain: Duration, now: SystemTime) -> Result<Self, Invalid> {
        let ahead = match now.duration_since(slot.time()) {
            Ok(age) if age > retain => {
                let problem = format!("it is older than {}, and may have run", humantime::format_duration(retain));
                return Err(Invalid::new(
                    WHAT,
                    slot,
                    problem,
                    "check this machine's clock and the slot, or remember slots for longer with `retain`",
                ));
            }
            Ok(_) => Duration::ZERO,
            Err(early) => early.duration(),
        };
        let keep = retain.saturating_add(CLOCKS_DIFFER).saturating_add(ahead);
        Ok(Self { name: format!("{job}@{slot}"), keep })
    }

    /// The mark that remembers the [first slot](crate::first_slot::FirstSlot) that a job has run: the mark of a slot that no schedule has. Its reason names
    /// that slot.
    pub(crate) fn of_first(job: &str) -> Self {
        Self { name: format!("{job}@{}", Slot(Timestamp::UNIX_EPOCH)), keep: Self::FIRST_KEPT }
    }

    /// How long a lease on the mark lasts that is only held: the ttl of the job, unless it would look like that of a mark that is
    /// kept.
    pub(crate) fn ttl_while_held(ttl: Ttl) -> Ttl {
        Ttl::new(LEASE_MAX).map_or(ttl, |longest| ttl.min(longest))
    }
}

#[cfg(test)]
mod tests {
    use lock_core::Holder;

    use super::*;

    fn slot(text: &str) -> Slot {
        text.parse().unwrap()
    }

    #[test]
    fn a_slot_is_one_time_however_it_is_written() {
        let same =
            ["2026-11-21T03:00Z", "2026-11-21 03:00", "2026-11-21T03:00:00", "2026-11-21T04:00+01", "20261121T0300Z"];
        for text in same {
            assert_eq!(slot(text).to_string(), "2026-11-21T03:00:00Z", "{text}");
        }
        assert_eq!(slot("2026-11-21"), slot("2026-11-21T00:00Z"));
        assert_eq!(Slot::at(slot("2026-11-21T03:00").time()), Ok(slot("2026-11-21T03:00")));
    }

    #[test]
    fn what_is_no_time_of_a_schedule_is_refused() {
        for (text, problem) in [
            ("", "it is not a time"),
            ("soon", "it is not a time"),
            ("03:00", "it is not a time"),
            ("2026-11-31T03:00", "it is not a time"),
            ("2026-11-21T25:00", "it is not a time"),
            ("2026-11-21T03:00+01:00[Europe/Berlin]", "it names a time zone"),
            ("2026-11-21T03:00[Europe/Berlin]", "it names a time zone"),
            ("2026-11-21T03:00:00.5Z", "it has a fraction of a second"),
        ] {
            let error = text.parse::<Slot>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("such as 2026-11-21T03:00"), "{text}: {error}");
        }
        assert!(Slot::at(slot("2026-11-21").time() + Duration::from_millis(1)).is_err());
    }

    #[test]
    fn a_reason_names_the_slot() {
        let slot = slot("2026-11-21T03:00");
        assert_eq!(slot.why(""), "slot 2026-11-21T03:00:00Z");
        assert_eq!(slot.why("the report: all"), "slot 2026-11-21T03:00:00Z: the report: all");
        for why in ["", "the report: all"] {
            let text = slot.why(why);
            assert_eq!(Slot::of_why(&text), Some((slot, why)));
        }
        let long = slot.why(&"\u{e4}".repeat(100));
        assert_eq!((Note::check_why(&long), Slot::of_why(&long).map(|(named, _)| named)), (Ok(()), Some(slot)));
        assert_eq!([Slot::of_why("the report"), Slot::of_why("slot machine")], [None, None]);
    }

    #[test]
    fn a_slot_is_remembered_for_longer_than_it_is_accepted() {
        let (slot, day) = (slot("2026-11-21T03:00"), Duration::from_secs(24 * 60 * 60));
        let mark = |now| Mark::of("nightly", slot, 7 * day, now);
        let on_time = mark(slot.time()).unwrap();
        assert_eq!(on_time, Mark { name: "nightly@2026-11-21T03:00:00Z".to_owned(), keep: 8 * day });
        assert_eq!(mark(slot.time() + 7 * day), Ok(on_time));
        let error = mark(slot.time() + 7 * day + Duration::from_secs(1)).unwrap_err().to_string();
        assert!(error.contains("it is older than 7days"), "{error}");
        assert_eq!(mark(slot.time() - 30 * day).unwrap().keep, 38 * day);
    }

    #[test]
    fn a_mark_is_told_from_other_locks() {
        let shown = |name: &str, left: Option<u64>| {
            let remaining = left.map(|hours| Duration::from_secs(hours * 60 * 60));
            Slot::marked_by(&Entry::exclusive(name.parse().unwrap(), Holder::Foreign, remaining, 0))
        };
        assert_eq!(shown("a@b@2026-11-21T03:00:00Z", Some(13)), Some(slot("2026-11-21T03:00")));
        for (name, left) in [
            ("nightly@2026-11-21T03:00:00Z", Some(1)),
            ("nightly@2026-11-21T03:00:00Z", None),
            ("nightly@2026-11-21T03:00", Some(13)),
            ("nightly", Some(13)),
        ] {
            assert_eq!(shown(name, left), None, "{name} {left:?}");
        }
        // However long the ttl of a job is, a mark that is only held does not look like one that is kept.
        let (short, long) = (Ttl::DEFAULT, Ttl::new(Duration::from_secs(24 * 60 * 60)).unwrap());
        assert_eq!(Mark::ttl_while_held(short), short);
        let held = Entry::exclusive(
            "nightly@2026-11-21T03:00:00Z".parse().unwrap(),
            Holder::Foreign,
            Some(Mark::ttl_while_held(long).get()),
            0,
        );
        assert_eq!(Slot::marked_by(&held), None);
    }
}
