//! `LEASEHOLD_LOG`: events of the lock, on standard error.

use std::io::{Write, stderr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use humantime::format_rfc3339_millis;
use leasehold::observe::{Event, Level, Observer};
use leasehold::{FencingToken, Invalid, LockName};
use serde_json::json;

use crate::visible::{line_of_json, visible};

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
        LEVELS.iter().find(named).map(|(_, level)| Self(*level)).ok_or_else(|| {
            let remedy = "use off, error, warn, info or debug, in --log or LEASEHOLD_LOG";
            Invalid::new("log level", text, "there is no such level", remedy)
        })
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
    /// A loss was logged: this program and the library may both find it.
    Lost,
    Closed,
}

/// A logged event.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) level: Level,
    /// What happened, in a few fixed words.
    pub(crate) event: &'static str,
    pub(crate) name: Option<&'a LockName>,
    pub(crate) token: Option<FencingToken>,
    pub(crate) message: String,
}

/// The event of a lease that was lost.
pub(crate) const LOST: &str = "lost";

impl Log {
    /// `None` if nothing is to be logged.
    pub(crate) fn new(level: LogLevel, form: Form) -> Option<Arc<Self>> {
        level.0.map(|least| Arc::new(Self { least, form, phase: Mutex::new(Phase::Open) }))
    }

    /// Prints nothing from now on: the last line is the outcome.
    pub(crate) fn close(&self) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Closed;
    }

    /// Whether events of this level are logged.
    pub(crate) fn includes(&self, level: Level) -> bool {
        level >= self.least
    }

    /// Prints an event, if its level is logged. Of several losses, it prints the first.
    pub(crate) fn write(&self, entry: Entry<'_>) {
        if !self.includes(entry.level) {
            return;
        }
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        match *phase {
            Phase::Closed => return,
            Phase::Lost if entry.event == LOST => return,
            Phase::Open | Phase::Lost => {}
        }
        if entry.event == LOST {
            *phase = Phase::Lost;
        }
        if let Some(line) = self.line(entry) {
            // If standard error is closed, nothing can be reported.
            let _ = writeln!(stderr().lock(), "{line}");
        }
    }

    fn line(&self, entry: Entry<'_>) -> Option<String> {
        let Entry { level, event, name, token, message } = entry;
        let (time, level) = (format_rfc3339_millis(SystemTime::now()), name_of(level));
        match self.form {
            Form::Text => Some(format!("leasehold: {time} {level}: {}", visible(&message))),
            Form::Json => {
                let (name, token) = (name.map(LockName::as_str), token.map(FencingToken::get));
                let line = json!({
                    "outcome": "log", "time": time.to_string(), "level": level, "event": event, "name": name, "token": token,
                    "message": message,
                });
                line_of_json(&line).ok()
            }
        }
    }
}

impl Observer for Log {
    fn observe(&self, event: &Event) {
        self.write(Entry {
            level: event.level(),
            event: event.name(),
            name: event.lock(),
            token: event.token(),
            message: event.to_string(),
        });
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
