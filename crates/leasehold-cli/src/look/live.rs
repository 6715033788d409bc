//! `leasehold ls --watch`.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write, stdout};
use std::time::SystemTime;

use humantime::format_rfc3339_seconds;
use lock_core::inspect::{Entry, Held};
use lock_core::{Holder, LockName, Moment};

use super::held_for::HeldFor;
use super::nothing::nothing_held;
use super::shown::{shown_as_json, sorted, table};
use crate::args::LsArgs;
use crate::exit::{Exit, Failure};
use crate::looks::{Look, Looks, Next, pause};
use crate::screen::has_controls;

/// Shows the locks until a signal ends it, or nobody reads any more.
pub(super) fn watch(args: &LsArgs) -> Result<Exit, Failure> {
    let mut looks = Looks::begin(args.store.url.as_deref(), &args.pattern)?;
    let screen = Screen::of_stdout();
    let mut seen = Seen::default();
    let mut look = Some(looks.first()?);
    loop {
        if let Some(Look { at, entries, .. }) = look {
            let entries = sorted(entries);
            seen.note(at, &entries);
            let text = match (args.json, entries.is_empty()) {
                (true, _) => shown_as_json(&entries)?,
                (false, true) => nothing_held(args),
                (false, false) => table(&entries, |name, held| seen.held_for(at, name, held)),
            };
            if screen.show(args, &text)? == Next::End {
                return Ok(Exit::Done);
            }
        }
        if pause(args.every.every) == Next::End {
            return Ok(Exit::Done);
        }
        look = looks.again()?;
    }
}

/// Where it is shown.
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

    fn show(&self, args: &LsArgs, text: &str) -> Result<Next, Failure> {
        let written = match self {
            Self::Redrawn if !args.json => {
                let heading = format!("{}   Ctrl-C ends this", format_rfc3339_seconds(SystemTime::now()));
                redraw(&format!("{heading}\n\n{text}"), size())
            }
            Self::Appended if !args.json => write_out(&format!("{text}\n\n")),
            Self::Redrawn | Self::Appended => write_out(&format!("{text}\n")),
        };
        match written {
            Ok(()) => Ok(Next::Look),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Next::End),
            Err(error) => Err(Failure::system("cannot write to standard output", error)),
        }
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

/// When the leases of the last look were seen first. Nothing is kept of those that have ended.
#[derive(Debug, Default)]
struct Seen {
    leases: BTreeMap<(LockName, u64), First>,
    last: Option<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct First {
    seen: Moment,
    /// The last look without it; `None` if it was there from the beginning.
    before: Option<Moment>,
}

impl Seen {
    fn note(&mut self, at: Moment, entries: &[Entry]) {
        let (mut known, before) = (std::mem::take(&mut self.leases), self.last.replace(at));
        for entry in entries {
            for key in entry.holders.iter().filter_map(|held| key(&entry.name, held)) {
                let first = known.remove(&key).unwrap_or(First { seen: at, before });
                self.leases.insert(key, first);
            }
        }
    }

    fn held_for(&self, now: Moment, name: &LockName, held: &Held) -> HeldFor {
        let glance = HeldFor::at_a_glance(held);
        let Some(first) = key(name, held).and_then(|key| self.leases.get(&key)) else { return glance };
        let at_most = first.before.map(|before| now.since(before)).into_iter().chain(glance.at_most).min();
        HeldFor { at_least: Some(now.since(first.seen)), at_most }
    }
}

/// What tells a lease from others.
fn key(name: &LockName, held: &Held) -> Option<(LockName, u64)> {
    match held.holder {
        Holder::Leasehold { tokens, .. } => Some((name.clone(), tokens.low().get())),
        Holder::Foreign => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::{FencingToken, Note, TokenRange};

    use super::*;

    fn entry(token: u64) -> Entry {
        let token = FencingToken::new(token).unwrap();
        let note = Note::from_wire("1@no-such-host");
        let holder = Holder::Leasehold { tokens: TokenRange::new(token, token).unwrap(), note };
        Entry::exclusive("a".parse().unwrap(), holder, None, 0)
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        assert_eq!(fitting("a\nb\nc", (80, 4)), ["a", "b", "c"]);
        assert_eq!(fitting("a\nb\nc", (80, 3)), ["a", "... and 2 more lines"]);
        assert_eq!(fitting("abcdefgh\nb\nc", (4, 5)), ["abcdefgh", "b", "c"]);
        assert_eq!(fitting("abcdefgh\nb\nc", (4, 4)), ["abcdefgh", "... and 2 more lines"]);
        assert_eq!(fitting("a\nb\nc", (0, 0)), ["a", "b", "c"]);
        assert_eq!(fitting("a\nb\nc", (1, 1)), ["... and 3 more lines"]);
    }

    #[test]
    fn a_lease_is_held_since_between_two_looks() {
        let at = |seconds| Moment::ORIGIN + Duration::from_secs(seconds);
        let (mut seen, one, two) = (Seen::default(), entry(1), entry(2));
        seen.note(at(10), std::slice::from_ref(&one));
        let held = |seen: &Seen, now, entry: &Entry| {
            let held = seen.held_for(at(now), &entry.name, &entry.holders[0]);
            (held.at_least.map(|time| time.as_secs()), held.at_most.map(|time| time.as_secs()))
        };
        assert_eq!(held(&seen, 12, &one), (Some(2), None), "it was there before");
        seen.note(at(15), std::slice::from_ref(&two));
        assert_eq!(held(&seen, 16, &two), (Some(1), Some(6)));
        assert_eq!(held(&seen, 16, &one), (None, None), "what has ended is forgotten");
        assert_eq!(seen.leases.len(), 1);
    }
}
