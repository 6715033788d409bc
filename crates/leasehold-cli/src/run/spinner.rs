//! What people see while they wait for a lock.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lock_core::inspect::Entry;
use lock_core::{LockName, Moment};
use lock_host::{Clock, HostClock};

use crate::report::{Tone, Voice, human};

/// How long a wait goes unmentioned.
const PATIENCE: Duration = Duration::from_millis(300);
/// How often the holder is looked up.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Shows who holds the lock and how long we have waited: a spinner on a terminal, one line elsewhere with `--verbose`.
#[derive(Debug)]
pub(crate) struct Spinner<'a> {
    name: &'a LockName,
    since: Moment,
    look_at: Moment,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Nothing,
    Line,
    Turning(ProgressBar),
}

impl<'a> Spinner<'a> {
    /// For a wait that begins now.
    pub(crate) fn new(name: &'a LockName, voice: &Voice) -> Self {
        let since = HostClock.now();
        let form = match voice.tone() {
            Tone::Quiet | Tone::Json => Form::Nothing,
            Tone::Normal | Tone::Verbose if stderr().is_terminal() => Form::Turning(hidden()),
            Tone::Normal => Form::Nothing,
            Tone::Verbose => Form::Line,
        };
        Self { name, since, look_at: since + PATIENCE, form }
    }

    /// Shows what there is to show; asks `look` for the holder about once a second, and only if somebody sees it.
    pub(crate) fn turn(&mut self, voice: &Voice, look: impl FnOnce() -> Option<Entry>) {
        let now = HostClock.now();
        if now < self.look_at || matches!(self.form, Form::Nothing) {
            return;
        }
        self.look_at = now + LOOK_EVERY;
        let text = format!("waiting for {}{}", self.name, held_by(look()));
        match &self.form {
            Form::Nothing => {}
            Form::Line => {
                voice.note(&text);
                self.form = Form::Nothing;
            }
            Form::Turning(bar) => {
                let waited = Duration::from_secs(now.since(self.since).as_secs());
                show(bar);
                bar.set_message(format!("{text}, {} so far", human(waited)));
            }
        }
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        if let Form::Turning(bar) = &self.form {
            bar.finish_and_clear();
        }
    }
}

fn hidden() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    bar.with_style(ProgressStyle::default_spinner())
}

fn show(bar: &ProgressBar) {
    if bar.is_hidden() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(TURN);
    }
}

fn held_by(entry: Option<Entry>) -> String {
    entry.map_or_else(String::new, |entry| format!(", held by {}", entry.holder))
}
