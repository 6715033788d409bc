//! Prints the results as they appear on standard output, and progress on standard error.

use std::io::{ErrorKind, IsTerminal, Write, stderr};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::shared::failure::Failure;

/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// What is important, right, and wrong.
pub(crate) const TITLE: Style = Style::new().bold();
pub(crate) const RIGHT: Style = AnsiColor::Green.on_default();
pub(crate) const WRONG: Style = AnsiColor::Red.on_default();

/// In which form the story is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Paragraph by paragraph, and bars at the end.
    Text,
    /// As one object, at the end.
    Json,
}

/// Tells the story.
#[derive(Debug)]
pub(crate) struct Teller {
    form: Form,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    Turning(ProgressBar),
    Lines,
    Nothing,
}

impl Teller {
    /// Shows progress by a spinner on a terminal, by lines elsewhere.
    pub(crate) fn new(form: Form) -> Self {
        let progress = match form {
            Form::Text | Form::Json if stderr().is_terminal() => Progress::Turning(spinner()),
            Form::Text => Progress::Lines,
            Form::Json => Progress::Nothing,
        };
        Self { form, progress }
    }

    /// A stage begins, the first with number 1.
    pub(crate) fn announce(&self, number: usize, of: usize, label: &str) {
        let text = format!("stage {number} of {of}: {label}");
        match &self.progress {
            Progress::Turning(bar) => bar.set_message(text),
            Progress::Lines => {
                // If standard error is closed, nothing can be reported.
                let _ = writeln!(stderr().lock(), "{text}");
            }
            Progress::Nothing => {}
        }
    }

    /// Tells a part of the story.
    pub(crate) fn tell(&self, text: &str) -> Result<(), Failure> {
        match (self.form, &self.progress) {
            (Form::Json, _) => Ok(()),
            (Form::Text, Progress::Turning(bar)) => bar.suspend(|| print(text)),
            (Form::Text, Progress::Lines | Progress::Nothing) => print(text),
        }
    }

    /// Tells the end: the last part as text, or the whole as one object.
    pub(crate) fn end(self, text: &str, whole: &impl Serialize) -> Result<(), Failure> {
        if let Progress::Turning(bar) = &self.progress {
            bar.finish_and_clear();
        }
        match self.form {
            Form::Text => print(text),
            Form::Json => {
                let json = serde_json::to_string(whole);
                print(&json.map_err(|error| Failure::system("cannot write JSON", error))?)
            }
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.enable_steady_tick(TURN);
    bar.with_style(ProgressStyle::default_spinner())
}

/// Prints with colour on a terminal only, and not if `NO_COLOR` is set.
fn print(text: &str) -> Result<(), Failure> {
    match writeln!(anstream::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::unprinted(&error)),
        // The reader has seen enough.
        Ok(()) | Err(_) => Ok(()),
    }
}
