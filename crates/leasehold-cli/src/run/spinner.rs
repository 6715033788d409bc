//! Progress while waiting for a lock.

use std::io::stderr;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::observe::Level;

use crate::durations::human;
use crate::exit::Exit;
use crate::lock_request::{LockRequest, Patience};
use crate::report::{Tone, Voice};
use crate::screen::{beside, has_controls, width};
use crate::visible::visible;

/// How long a wait must last before it is mentioned.
const PATIENCE: Duration = Duration::from_millis(300);
/// The same for a line that stays. Chosen: a shorter wait is not worth a line.
const LOG_PATIENCE: Duration = Duration::from_secs(3);
/// How often to look up what is in the way.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);
/// The width of what turns, before the text.
const MARGIN: usize = 2;

/// Shows what is in the way of the lock and how long we have waited: a spinner on a terminal that can show one, one line elsewhere.
#[derive(Debug)]
pub(crate) struct Spinner<'a> {
    request: &'a LockRequest,
    since: Moment,
    look_at: Moment,
    form: Form,
    /// How a line begins: whether this is a wait, and was mentioned before.
    wording: &'static str,
}

#[derive(Debug)]
enum Form {
    Nothing,
    Line,
    Turning(ProgressBar),
}

impl<'a> Spinner<'a> {
    /// For a wait that begins now.
    pub(crate) fn new(request: &'a LockRequest, voice: &Voice) -> Self {
        let since = HostClock.now();
        let (form, patience) = match voice.tone() {
            _ if voice.logs(Level::Debug) => (Form::Line, PATIENCE),
            Tone::Quiet | Tone::Json => (Form::Nothing, PATIENCE),
            // The spinner would overwrite the lines of a log.
            Tone::Normal | Tone::Verbose if can_turn() && voice.log().is_none() => (Form::Turning(hidden()), PATIENCE),
            Tone::Normal if Exit::Busy(request.busy_code).goes_without_saying() => (Form::Nothing, PATIENCE),
            Tone::Normal => (Form::Line, LOG_PATIENCE),
            Tone::Verbose => (Form::Line, PATIENCE),
        };
        // Even then, the store may take a while to answer.
        let wording = if matches!(request.patience, Patience::None) { "asking" } else { "waiting" };
        Self { request, since, look_at: since + patience, form, wording }
    }

    /// Prints something that mentions the wait, without disturbing the spinner.
    pub(crate) fn aside(&mut self, say: impl FnOnce()) {
        self.wording = "still waiting";
        match &self.form {
            Form::Nothing | Form::Line => say(),
            Form::Turning(bar) => bar.suspend(say),
        }
    }

    /// Whether it is time to look up what is in the way: about once a second, and only if it is shown.
    pub(crate) fn wants_look(&mut self) -> bool {
        let now = HostClock.now();
        if now < self.look_at || matches!(self.form, Form::Nothing) {
            return false;
        }
        self.look_at = now + LOOK_EVERY;
        true
    }

    /// Shows what is in the way.
    pub(crate) fn show(&mut self, voice: &Voice, obstacle: Option<String>) {
        let now = HostClock.now();
        let obstacle = obstacle.map_or_else(String::new, |obstacle| format!(", {obstacle}"));
        let text = format!("{} for {}{obstacle}", self.wording, self.request.name);
        match &self.form {
            Form::Nothing => {}
            Form::Line => {
                voice.tell_waiting(&self.request.name, &text);
                self.form = Form::Nothing;
            }
            Form::Turning(bar) => {
                let waited = Duration::from_secs(now.since(self.since).as_secs());
                show(bar);
                let text = format!("{text}, {}", progress(waited, self.request.patience));
                bar.set_message(beside(MARGIN, &visible(&text), &stderr()));
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

/// Whether a spinner can be drawn and removed: its rows cannot be found again on a terminal of unknown width.
fn can_turn() -> bool {
    has_controls(&stderr()) && width(stderr()).is_some()
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

fn progress(waited: Duration, patience: Patience) -> String {
    match patience {
        Patience::Until(limit) => format!("{} of at most {}", human(waited), human(limit)),
        Patience::None | Patience::Endless | Patience::Always => format!("{} so far", human(waited)),
    }
}
