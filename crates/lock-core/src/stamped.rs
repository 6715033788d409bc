//! When a lease was granted, beside the note of its holder.

use std::time::Duration;

use crate::Note;

/// What stands between the two in a store. A note begins with a process id and `@`, so none looks like a time.
const SEPARATOR: char = '~';

/// The note of a lease with the time of its grant, as a store keeps them; in a SQLite file also that of a place, with the time at which its
/// waiter joined. For display; a SQLite file also tells boots apart by that of a lease.
///
/// The time is in whole seconds of whatever clock the store uses for this: no lease depends on it, and no clock is read
/// here. In a store both are one line, `SECONDS~PID@HOST WHY`. A line without seconds is a note of unknown age, written by an
/// earlier version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// What the holder says about itself.
    pub note: Note,
    seconds: Option<u64>,
}

impl Stamped {
    /// The note of a lease that was granted at this time, counted from the origin of the store's clock.
    pub fn new(note: Note, granted: Duration) -> Self {
        Self { note, seconds: Some(granted.as_secs()) }
    }

    /// Another note of the same age.
    #[must_use]
    pub fn with_note(&self, note: Note) -> Self {
        Self { note, seconds: self.seconds }
    }

    /// Reads a line from a store, as [`Note::from_wire`] does.
    pub fn from_wire(line: &str) -> Self {
        let (time, note) = line.split_once(SEPARATOR).unwrap_or_default();
        match time.parse().ok().filter(|seconds: &u64| seconds.to_string() == time) {
            Some(seconds) => Self { note: Note::from_wire(note), seconds: Some(seconds) },
            None => Self { note: Note::from_wire(line), seconds: None },
        }
    }

    /// The line for a store.
    pub fn to_wire(&self) -> String {
        let note = self.note.to_wire();
        self.seconds.map_or_else(|| note.to_owned(), |seconds| format!("{seconds}{SEPARATOR}{note}"))
    }

    /// When the lease was granted, to the second, counted from the origin of the store's clock; `None` if unknown.
    pub fn granted(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs)
    }

    /// How long ago the lease was granted, zero if the clock has been set back since; `None` if unknown.
    pub fn age(&self, now: Duration) -> Option<Duration> {
        self.granted().map(|granted| now.saturating_sub(granted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "4711@web-3 ~7 nightly";

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_time_comes_back_with_its_note() {
        let stamped = Stamped::new(Note::from_wire(NOTE), Duration::from_millis(1_700_000_000_900));
        assert_eq!(stamped.to_wire(), format!("1700000000~{NOTE}"));
        let back = Stamped::from_wire(&stamped.to_wire());
        assert_eq!((&back, back.note.to_wire()), (&stamped, NOTE));
        assert_eq!(back.age(seconds(1_700_000_125)), Some(seconds(125)));
        assert_eq!(back.age(seconds(1_600_000_000)), Some(Duration::ZERO));
        assert_eq!(back.granted(), Some(seconds(1_700_000_000)));
        assert_eq!(back.with_note(Note::from_wire("1@h")).to_wire(), "1700000000~1@h");
    }

    #[test]
    fn a_note_of_an_earlier_version_has_no_age_and_stays_what_it_is() {
        let odd =
            ["", "~", "~4711@h", "+5~4711@h", "05~4711@h", "5 ~4711@h", "99999999999999999999~4711@h", "4711@h 5~"];
        for line in [NOTE].into_iter().chain(odd) {
            let stamped = Stamped::from_wire(line);
            assert_eq!((stamped.note.to_wire(), stamped.age(seconds(1))), (line, None));
            assert_eq!(stamped.to_wire(), line);
        }
    }
}
