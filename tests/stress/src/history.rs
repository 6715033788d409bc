//! What workers record: one file for each process, one line for each event.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use crate::ask::Ask;
use crate::hold::Hold;

/// The time on the clock that all processes of this machine share, and that counts suspend, in nanoseconds.
///
/// Read here and not through the library, which is under test.
pub fn now() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let reading = rustix::time::clock_gettime(clock);
    let since = Duration::new(reading.tv_sec.try_into().unwrap(), reading.tv_nsec.try_into().unwrap());
    since.as_nanos().try_into().unwrap()
}

/// What happened to a waiter or holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It began to wait.
    Waits,
    /// It has a guard of this hold, and the guard's check said so after the moment was read. It may be in place of the guard
    /// that it had.
    Has(Hold),
    /// The guard's check still said so after the moment was read.
    Still,
    /// It is about to ask the register in its turn.
    Asks(Ask),
    /// The answer: the number, or none for a refusal.
    Answered(Option<u64>),
    /// Its turn is over.
    Ended(Ending),
    /// Its wait ended without a turn.
    Left(Leaving),
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By a release that waited for the answer.
    Released,
    /// By dropping the guard.
    Dropped,
    /// By leaving a ticket for others.
    Detached,
    /// The hold was lost.
    Lost,
    /// The hold was lost, and waiting for the loss did not end.
    Untold,
}

/// How waiting ended without a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The lock was busy, and the waiter did not want to wait.
    Busy,
    /// The future was dropped.
    Cancelled,
    /// The wait timed out.
    TimedOut,
    /// The ticket was not good any more.
    TicketOver,
    /// The store failed with a transient error.
    Unavailable,
    /// Something that must not happen.
    Refused(String),
}

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, as [`now`] says.
    pub at: u64,
    /// Which of the worker's seats: each plays one waiter.
    pub seat: usize,
    /// The lock.
    pub lock: String,
    /// What happened.
    pub what: What,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} ", self.at, self.seat, self.lock)?;
        match &self.what {
            What::Waits => f.write_str("waits"),
            What::Has(hold) => write!(f, "{hold}"),
            What::Still => f.write_str("still"),
            What::Asks(ask) => write!(f, "asks {ask}"),
            What::Answered(Some(number)) => write!(f, "answered {number}"),
            What::Answered(None) => f.write_str("answered refused"),
            What::Ended(Ending::Released) => f.write_str("released"),
            What::Ended(Ending::Dropped) => f.write_str("dropped"),
            What::Ended(Ending::Detached) => f.write_str("detached"),
            What::Ended(Ending::Lost) => f.write_str("lost"),
            What::Ended(Ending::Untold) => f.write_str("untold"),
            What::Left(Leaving::Busy) => f.write_str("busy"),
            What::Left(Leaving::Cancelled) => f.write_str("cancelled"),
            What::Left(Leaving::TimedOut) => f.write_str("timed-out"),
            What::Left(Leaving::TicketOver) => f.write_str("ticket-over"),
            What::Left(Leaving::Unavailable) => f.write_str("unavailable"),
            What::Left(Leaving::Refused(why)) => write!(f, "refused {}", why.replace('\n', " ")),
        }
    }
}

/// A line that is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl FromStr for Event {
    type Err = Unreadable;

    fn from_str(line: &str) -> Result<Self, Unreadable> {
        parse(line).ok_or_else(|| Unreadable(line.to_owned()))
    }
}

fn parse(line: &str) -> Option<Event> {
    let mut words = line.splitn(5, ' ');
    let (at, seat, lock) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.to_owned());
    let what = match (words.next()?, words.next()) {
        ("waits", None) => What::Waits,
        (verb @ ("has" | "reads" | "permits"), Some(held)) => What::Has(format!("{verb} {held}").parse().ok()?),
        ("still", None) => What::Still,
        ("asks", Some(ask)) => What::Asks(ask.parse().ok()?),
        ("answered", Some("refused")) => What::Answered(None),
        ("answered", Some(number)) => What::Answered(Some(number.parse().ok()?)),
        ("released", None) => What::Ended(Ending::Released),
        ("dropped", None) => What::Ended(Ending::Dropped),
        ("detached", None) => What::Ended(Ending::Detached),
        ("lost", None) => What::Ended(Ending::Lost),
        ("untold", None) => What::Ended(Ending::Untold),
        ("busy", None) => What::Left(Leaving::Busy),
        ("cancelled", None) => What::Left(Leaving::Cancelled),
        ("timed-out", None) => What::Left(Leaving::TimedOut),
        ("ticket-over", None) => What::Left(Leaving::TicketOver),
        ("unavailable", None) => What::Left(Leaving::Unavailable),
        ("refused", Some(why)) => What::Left(Leaving::Refused(why.to_owned())),
        _ => return None,
    };
    Some(Event { at, seat, lock, what })
}

/// The file that a worker writes its history to.
#[derive(Debug)]
pub struct Log(File);

impl Log {
    /// Opens the file for appending.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    /// Writes one line with one system call, so a killed process loses at most this line.
    pub fn say(&self, at: u64, seat: usize, lock: &str, what: What) {
        let line = format!("{}\n", Event { at, seat, lock: lock.to_owned(), what });
        (&self.0).write_all(line.as_bytes()).unwrap();
    }
}

/// Reads a history; a last line without its end was being written when the process died.
///
/// # Errors
/// The first line that is not an event.
pub fn read(text: &str) -> Result<Vec<Event>, Unreadable> {
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::parse).collect()
}

/// Reads the history in a file.
pub fn read_file(path: &Path) -> Vec<Event> {
    // A worker that was killed before it began has none.
    let text = fs::read_to_string(path).unwrap_or_default();
    read(&text).unwrap_or_else(|Unreadable(line)| panic!("{} holds {line:?}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_back_from_their_lines() {
        let whats = [
            What::Waits,
            What::Has(Hold::Write(1_700_000_000_000_001)),
            What::Has(Hold::Read(7)),
            What::Has(Hold::Permits(vec![(0, 7), (2, 8)])),
            What::Still,
            What::Asks(Ask { resource: "pool#2".into(), token: 7, base: None }),
            What::Asks(Ask { resource: "hot".into(), token: 7, base: Some(3) }),
            What::Answered(Some(4)),
            What::Answered(None),
            What::Ended(Ending::Released),
            What::Ended(Ending::Dropped),
            What::Ended(Ending::Detached),
            What::Ended(Ending::Lost),
            What::Ended(Ending::Untold),
            What::Left(Leaving::Busy),
            What::Left(Leaving::Cancelled),
            What::Left(Leaving::TimedOut),
            What::Left(Leaving::TicketOver),
            What::Left(Leaving::Unavailable),
            What::Left(Leaving::Refused("redis acquire: no".into())),
        ];
        let events: Vec<Event> =
            (5..).zip(whats).map(|(at, what)| Event { at, seat: 2, lock: "hot".into(), what }).collect();
        let text: String = events.iter().map(|event| format!("{event}\n")).collect();
        assert_eq!(read(&text).unwrap(), events);
    }

    #[test]
    fn an_unfinished_line_is_ignored_and_a_broken_one_is_an_error() {
        assert_eq!(read("7 0 hot waits\n8 0 hot has 1").unwrap().len(), 1);
        assert_eq!(read("7 0 hot wai\n").unwrap_err(), Unreadable("7 0 hot wai".into()));
        for wrong in ["still 3", "permits", "permits 0", "permits 0:7,", "reads", "reads x", "asks hot", "asks hot 7 x"]
        {
            assert!(read(&format!("7 0 hot {wrong}\n")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_clock_runs() {
        assert!(now() > 0 && now() <= now());
    }
}
