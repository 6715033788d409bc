//! Output: results on standard output; messages or JSON on standard error.

mod file;
mod outcome;

use std::io::{self, ErrorKind, Write, stderr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use leasehold::observe::Level;
use leasehold::{FencingToken, LockName};
use serde::Serialize;
use serde_json::{Value, json};

use self::file::ReportFile;
pub(crate) use self::outcome::Report;
use crate::exit::{Exit, Failure};
use crate::log::{Entry, LOST, Log};
use crate::screen::beside;
use crate::visible::{line_of_json, unhidden, visible};

/// How much is printed on standard error, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing.
    Quiet,
    /// What went wrong.
    Normal,
    /// Also what is being done.
    Verbose,
    /// JSON lines, of which the last is the outcome.
    Json,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const PLAIN: Style = Style::new();
/// The width of what messages begin with.
const MARGIN: usize = "leasehold: ".len();

/// Prints messages on standard error, with colour on a terminal only, and keeps warnings for the report.
#[derive(Debug)]
pub(crate) struct Voice {
    tone: Tone,
    log: Option<Arc<Log>>,
    file: Option<ReportFile>,
    warnings: Vec<String>,
    /// Warnings that are printed after the outcome, which they follow from.
    consequences: Vec<String>,
}

impl Voice {
    /// A voice in this tone, next to a log.
    pub(crate) fn new(tone: Tone, log: Option<Arc<Log>>) -> Self {
        Self { tone, log, file: None, warnings: Vec::new(), consequences: Vec::new() }
    }

    /// The log, if there is one.
    pub(crate) fn log(&self) -> Option<Arc<Log>> {
        self.log.clone()
    }

    /// Writes the report to this file, too.
    pub(crate) fn report_to(&mut self, path: &Path) -> Result<(), Failure> {
        self.file = Some(ReportFile::create(path)?);
        Ok(())
    }

    /// How much is printed.
    pub(crate) fn tone(&self) -> Tone {
        self.tone
    }

    /// Whether events of this level are logged.
    pub(crate) fn logs(&self, level: Level) -> bool {
        self.log.as_ref().is_some_and(|log| log.includes(level))
    }

    /// Prints what is being done, if asked for. A log at the level debug says the same.
    pub(crate) fn note(&self, text: &str) {
        if self.tone == Tone::Verbose && !self.logs(Level::Debug) {
            say(PLAIN, text);
        }
    }

    /// Prints a warning and keeps it for the report.
    pub(crate) fn warn(&mut self, text: &str) {
        self.print_warning(text);
        self.warnings.push(text.to_owned());
    }

    /// Keeps a warning for the report, and prints it after the outcome.
    pub(crate) fn warn_afterwards(&mut self, text: &str) {
        self.consequences.push(text.to_owned());
    }

    /// Warns of a store error that does not end the wait. As JSON, it is a line of its own.
    pub(crate) fn warn_waiting(&mut self, name: &LockName, error: &str) {
        let message = format!("still waiting for {name}, but {error}");
        if self.tone == Tone::Json {
            print_json(&json!({ "outcome": "waiting", "name": name.as_str(), "message": message }));
        } else if !self.logged(Level::Warn, "waiting", Some(name), &message) {
            self.print_warning(&message);
        }
        self.warnings.push(message);
    }

    /// Says for what it waits: in the log, or else as a message.
    pub(crate) fn tell_waiting(&self, name: &LockName, text: &str) {
        if !self.logged(Level::Debug, "waiting", Some(name), text) {
            self.tell(text);
        }
    }

    /// Says which store is asked: in the log, or else as a message.
    pub(crate) fn tell_store(&self, text: &str) {
        if !self.logged(Level::Debug, "store", None, text) {
            self.note(text);
        }
    }

    /// Says that this machine leads, unless that is said in more detail.
    pub(crate) fn tell_elected(&self, name: &LockName, term: FencingToken) {
        if self.tone == Tone::Normal && !self.logs(Level::Debug) {
            say(PLAIN, &format!("elected: this machine leads {name}, term {term}"));
        }
    }

    /// Logs that the lease was lost, unless the library has done so.
    pub(crate) fn log_loss(&self, name: &LockName, token: FencingToken, held: Duration, reason: &str) {
        let message = format!("lost \"{name}\" (token {token}) after {held:.1?}: {reason}");
        if let Some(log) = &self.log {
            log.write(Entry { level: Level::Error, event: LOST, name: Some(name), token: Some(token), message });
        }
    }

    /// Logs this, if events of the level are logged; says whether they are.
    fn logged(&self, level: Level, event: &'static str, name: Option<&LockName>, text: &str) -> bool {
        let log = self.log.as_ref().filter(|log| log.includes(level));
        log.map(|log| log.write(Entry { level, event, name, token: None, message: text.to_owned() })).is_some()
    }

    fn print_warning(&self, text: &str) {
        if matches!(self.tone, Tone::Normal | Tone::Verbose) {
            say(WARNING, text);
        }
    }

    /// Prints a message that is not a warning.
    pub(crate) fn tell(&self, text: &str) {
        if matches!(self.tone, Tone::Normal | Tone::Verbose) {
            say(PLAIN, text);
        }
    }

    /// Prints how a term of this machine as the leader has ended, and keeps no warnings of it. As JSON, it is a line of its own.
    pub(crate) fn end_term(&mut self, report: Report, exit: Exit, message: String) {
        let report = self.filled(Report { message: Some(message), ..report }, exit);
        if self.tone == Tone::Json {
            print_json(&report);
        }
        report.message.iter().for_each(|text| self.print_warning(text));
        std::mem::take(&mut self.consequences).iter().for_each(|text| self.print_warning(text));
    }

    /// The report of this end, with the warnings.
    fn filled(&mut self, mut report: Report, exit: Exit) -> Report {
        report.warnings = std::mem::take(&mut self.warnings);
        report.warnings.extend_from_slice(&self.consequences);
        (report.outcome, report.exit) = (exit.word(), exit.code());
        report
    }

    /// Prints and writes the outcome.
    pub(crate) fn close(mut self, report: Report, exit: Exit) {
        let report = self.filled(report, exit);
        if let Some(file) = self.file.take() {
            warn_unless(file.fill(&report));
        }
        if let Some(log) = &self.log {
            log.close();
        }
        match self.tone {
            Tone::Quiet => {}
            Tone::Normal if exit.goes_without_saying() => {}
            Tone::Normal | Tone::Verbose => {
                if let Some(message) = &report.message {
                    say(if exit == Exit::Skipped { PLAIN } else { ERROR }, message);
                }
            }
            Tone::Json => print_json(&report),
        }
        self.consequences.iter().for_each(|text| self.print_warning(text));
    }
}

/// Prints a result on standard output. What others have named in it is [`visible`], or in JSON.
pub(crate) fn print(text: &str) -> Result<Exit, Failure> {
    written(writeln!(io::stdout().lock(), "{}", unhidden(text))).map(|_| Exit::Done)
}

/// The next step after a result was written, or after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Continue.
    Again,
    /// Nobody reads what is printed.
    End,
}

/// The next step after writing a result.
pub(crate) fn written(result: io::Result<()>) -> Result<Next, Failure> {
    match result {
        Ok(()) => Ok(Next::Again),
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Next::End),
        Err(error) => Err(Failure::unprinted(&error)),
    }
}

/// Prints an error, outside `run`.
pub(crate) fn say_error(text: &str) {
    say(ERROR, text);
}

/// A failure without a run.
fn failed(Failure { exit, message, .. }: &Failure) -> Value {
    json!({ "outcome": exit.word(), "exit": exit.code(), "message": message })
}

/// Prints a failure as one line of JSON, outside `run`.
pub(crate) fn say_failure_as_json(failure: &Failure) {
    print_json(&failed(failure));
}

/// Writes a failure to the file of `--report`, before `run` begins.
pub(crate) fn report_failure(path: &Path, failure: &Failure) {
    match ReportFile::create(path) {
        Ok(file) => warn_unless(file.fill(&failed(failure))),
        Err(error) => say(WARNING, &error.message),
    }
}

/// Prints what is neither a result nor a problem, outside `run`.
pub(crate) fn say_note(text: &str) {
    say(PLAIN, text);
}

/// Prints a warning, outside `run`.
pub(crate) fn say_warning(text: &str) {
    say(WARNING, text);
}

/// Asks a question on the terminal. The cursor stays behind it.
pub(crate) fn say_question(text: &str) {
    // If standard error is closed, the answer is no.
    let mut out = anstream::stderr().lock();
    let _ = write!(out, "leasehold: {}", beside(MARGIN, &visible(text), &stderr())).and_then(|()| out.flush());
}

/// As one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    line_of_json(value).map_err(|error| Failure::system("cannot write JSON", error))
}

fn warn_unless(written: Result<(), String>) {
    if let Err(text) = written {
        say(WARNING, &text);
    }
}

fn say(style: Style, text: &str) {
    let text = beside(MARGIN, &visible(text), &stderr());
    // If standard error is closed, nothing can be reported.
    let _ = writeln!(anstream::stderr().lock(), "{style}leasehold:{style:#} {text}");
}

fn print_json(report: &impl Serialize) {
    if let Ok(line) = line_of_json(report) {
        let _ = writeln!(stderr().lock(), "{line}");
    }
}
