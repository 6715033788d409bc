//! `LEASEHOLD_LOG`: events of the lock, on standard error.

use std::io::{Write, stderr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use humantime::format_rfc3339_millis;
use leasehold::observe::{Level, Observer, Occurrence};
use lock_core::Invalid;
use serde::Serialize;

/// The names of the levels. Each includes those before it.
const LEVELS: [(&str, Option<Level>); 5] = [
    ("off", None),
    ("error", Some(Level::Error)),
    ("warn", Some(Level::Warn)),
    ("info", Some(Level::Info)),
    ("debug", Some(Level::Debug)),
];

/// How much is logged: everything from a level on, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLevel(Option<Level>);

impl FromStr for LogLevel {
    type Err = Invalid;

    /// An empty variable counts as not set.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let named = |(name, _): &&(&str, _)| name.eq_ignore_ascii_case(text) || (text.is_empty() && *name == "off");
        let unknown = || {
            let remedy = "use off, error, warn, info or debug, in --log or LEASEHOLD_LOG";
            Invalid::new("log level", text, "it is not known", remedy)
        };
        LEVELS.iter().find(named).map(|(_, level)| Self(*level)).ok_or_else(unknown)
    }
}

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As text.
    Text,
    /// As one JSON object.
    Json,
}

/// Prints events, until it is closed.
#[derive(Debug)]
pub(crate) struct Log {
    least: Level,
    form: Form,
    phase: Mutex<Phase>,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

/// A line of JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    outcome: &'static str,
    time: String,
    level: &'static str,
    event: &'static str,
    name: Option<&'a str>,
    token: Option<u64>,
    message: String,
}

impl Log {
    /// `None` if nothing is to be logged.
    pub(crate) fn new(level: LogLevel, form: Form) -> Option<Arc<Self>> {
        level.0.map(|least| Arc::new(Self { least, form, phase: Mutex::new(Phase::Open) }))
    }

    /// Prints nothing from now on: the last line is the outcome.
    pub(crate) fn close(&self) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Closed;
    }

    fn line(&self, occurrence: &Occurrence) -> Option<String> {
        let (time, level) = (format_rfc3339_millis(SystemTime::now()), name_of(occurrence.level()));
        match self.form {
            Form::Text => Some(format!("leasehold: {time} {level}: {occurrence}")),
            Form::Json => serde_json::to_string(&Line {
                outcome: "log",
                time: time.to_string(),
                level,
                event: occurrence.name(),
                name: occurrence.lock().map(|lock| lock.as_str()),
                token: occurrence.token().map(|token| token.get()),
                message: occurrence.to_string(),
            })
            .ok(),
        }
    }
}

impl Observer for Log {
    fn observe(&self, occurrence: &Occurrence) {
        if occurrence.level() < self.least {
            return;
        }
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Phase::Open, Some(line)) = (&*phase, self.line(occurrence)) {
            // If standard error is closed, nothing can be reported.
            let _ = writeln!(stderr().lock(), "{line}");
        }
    }
}

fn name_of(level: Level) -> &'static str {
    LEVELS.iter().find(|(_, other)| *other == Some(level)).map_or("off", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_in_either_case_and_nothing_is_off() {
        for (name, level) in LEVELS {
            assert_eq!(name.parse(), Ok(LogLevel(level)));
            assert_eq!(name.to_uppercase().parse(), Ok(LogLevel(level)));
        }
        assert_eq!("".parse(), Ok(LogLevel(None)));
        assert!("warning".parse::<LogLevel>().unwrap_err().to_string().contains("off, error, warn, info or debug"));
    }
}
