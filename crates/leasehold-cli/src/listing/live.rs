//! `leasehold ls --watch`.

use std::io::{Write, stdout};
use std::time::SystemTime;

use humantime::format_rfc3339_seconds;

use super::nothing::nothing_held;
use super::shown::{shown_as_json, sorted, table};
use crate::args::LsArgs;
use crate::exit::{Exit, Failure};
use crate::poller::{Poller, pause};
use crate::report::{Next, written};
use crate::screen::has_controls;
use crate::table::Drawn;

/// Shows the locks until a signal ends it, or nobody reads any more.
pub(super) fn watch(args: &LsArgs) -> Result<Exit, Failure> {
    let mut poller = Poller::begin(args.store.url.as_deref(), &args.pattern)?;
    let screen = Screen::of_stdout();
    let mut listing = Some(poller.first()?);
    loop {
        if let Some(listing) = listing {
            let entries = sorted(listing.entries(), args.sort);
            let (text, left_out) = match (args.json, entries.is_empty()) {
                (true, _) => (shown_as_json(&entries)?, None),
                (false, true) => (nothing_held(args), None),
                (false, false) => {
                    let Drawn { table, left_out } = table(&entries, poller.endless());
                    (table, left_out)
                }
            };
            if screen.show(args, &text, &left_out.unwrap_or_default())? == Next::End {
                return Ok(Exit::Done);
            }
        }
        if pause(args.every.every) == Next::End {
            return Ok(Exit::Done);
        }
        listing = poller.again()?;
    }
}

/// The terminal that shows it.
enum Screen {
    /// A terminal, on which each look replaces the one before.
    Redrawn,
    /// Anything else: one look after the other.
    Appended,
}

impl Screen {
    fn of_stdout() -> Self {
        if has_controls(&stdout()) { Self::Redrawn } else { Self::Appended }
    }

    fn show(&self, args: &LsArgs, text: &str, left_out: &str) -> Result<Next, Failure> {
        written(match self {
            Self::Redrawn if !args.json => {
                let heading = format!("{}   Ctrl-C ends this", format_rfc3339_seconds(SystemTime::now()));
                redraw(&format!("{heading}\n{left_out}\n{text}"), size())
            }
            Self::Appended if !args.json => write_out(&format!("{text}\n{left_out}\n")),
            Self::Redrawn | Self::Appended => write_out(&format!("{text}\n")),
        })
    }
}

fn write_out(text: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes over what is there, so that nothing flickers. It leaves the terminal as it is, so it can be ended at any point.
fn redraw(text: &str, size: (usize, usize)) -> std::io::Result<()> {
    let lines = fitting(text, size).join("\x1b[K\n");
    write_out(&format!("\x1b[H{lines}\x1b[K\x1b[J\n"))
}

/// Columns and rows of the terminal; 0 if unknown.
fn size() -> (usize, usize) {
    rustix::termios::tcgetwinsize(stdout()).map_or((0, 0), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// The lines that fit, with a line that says how many do not. Long lines take several rows. Without a size, everything fits.
fn fitting(text: &str, (columns, rows): (usize, usize)) -> Vec<String> {
    let height = |line: &str| if columns == 0 { 1 } else { line.chars().count().div_ceil(columns).max(1) };
    let lines: Vec<_> = text.lines().collect();
    // The cursor is below the last line.
    let space = if rows == 0 { usize::MAX } else { rows.saturating_sub(1).max(1) };
    let all: usize = lines.iter().map(|line| height(line)).sum();
    let mut left = if all <= space { space } else { space.saturating_sub(1) };
    let mut shown = Vec::new();
    for line in &lines {
        let Some(rest) = left.checked_sub(height(line)) else { break };
        left = rest;
        shown.push((*line).to_owned());
    }
    match lines.len() - shown.len() {
        0 => {}
        hidden => shown.push(format!("... and {hidden} more lines")),
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        assert_eq!(fitting("a\nb\nc", (80, 4)), ["a", "b", "c"]);
        assert_eq!(fitting("a\nb\nc", (80, 3)), ["a", "... and 2 more lines"]);
        assert_eq!(fitting("abcdefgh\nb\nc", (4, 5)), ["abcdefgh", "b", "c"]);
        assert_eq!(fitting("abcdefgh\nb\nc", (4, 4)), ["abcdefgh", "... and 2 more lines"]);
        assert_eq!(fitting("a\nb\nc", (0, 0)), ["a", "b", "c"]);
        assert_eq!(fitting("a\nb\nc", (1, 1)), ["... and 3 more lines"]);
    }
}
