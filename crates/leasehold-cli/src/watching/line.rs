//! An event as one line.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use humantime::format_rfc3339_millis;
use leasehold::Holder;
use leasehold::backend::ModeKind;
use leasehold::inspect::watch::Happened;
use leasehold::inspect::{Held, Mode};
use serde::Serialize;

use super::following::Change;
use crate::durations::whole_seconds;
use crate::holders::name_of;
use crate::listing::Lease;

/// Said of a state that is older than the watch, if its age is unknown.
const ALREADY: &str = "already when the watch began";

/// An event for scripts.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    time: String,
    /// `acquired`, `queued`, `released`, `lost`, `broken` or `ended`.
    event: &'static str,
    name: &'a str,
    /// Whether the lock was held already when the watch began.
    already: bool,
    /// Who acquired the lock or had it; null for `queued`.
    lease: Option<Lease<'a>>,
    /// Who broke it.
    by: Option<String>,
    /// How many more wait than at the look before; null unless it is `queued`.
    joined: Option<u32>,
    /// What the last of them asks for, if the store shows it.
    wanted: Option<ModeKind>,
    /// How many wait now.
    waiters: u32,
}

impl<'a> From<&'a Change> for Line<'a> {
    fn from(Change { time, seen, already }: &'a Change) -> Self {
        let (lease, by, joined, wanted) = match &seen.happened {
            Happened::Queued { more, wanted } => (None, None, Some(*more), wanted.map(Mode::kind)),
            Happened::Revoked(held, by) => (Some(held), Some(by.to_string()), None, None),
            Happened::Acquired(held) | Happened::Released(held) | Happened::Expired(held) | Happened::Ended(held) => {
                (Some(held), None, None, None)
            }
        };
        Line {
            time: format_rfc3339_millis(*time).to_string(),
            event: word(&seen.happened).0,
            name: seen.name.as_str(),
            already: *already,
            lease: lease.map(Lease::from),
            by,
            joined,
            wanted,
            waiters: seen.waiters,
        }
    }
}

/// The event in one word, and its colour on a terminal.
fn word(happened: &Happened) -> (&'static str, Style) {
    let (word, colour) = match happened {
        Happened::Acquired(_) => ("acquired", AnsiColor::Green),
        Happened::Queued { .. } => ("queued", AnsiColor::Cyan),
        Happened::Released(_) => ("released", AnsiColor::Blue),
        Happened::Expired(_) => ("lost", AnsiColor::Red),
        Happened::Revoked(..) => ("broken", AnsiColor::Yellow),
        Happened::Ended(_) => ("ended", AnsiColor::Yellow),
    };
    (word, colour.on_default())
}

/// An event for display.
pub(super) fn text(change: &Change) -> String {
    let (word, style) = word(&change.seen.happened);
    let detail = match &change.seen.happened {
        Happened::Acquired(held) if change.already => format!("{}, {}", lease(held), already(held)),
        Happened::Revoked(held, by) => format!("{}, broken by {by}", lease(held)),
        Happened::Acquired(held) | Happened::Released(held) | Happened::Expired(held) | Happened::Ended(held) => {
            lease(held)
        }
        Happened::Queued { more, wanted } => {
            let wanted = wanted.map_or_else(String::new, |mode| format!(" ({})", mode.kind()));
            let already = if change.already { format!(", {ALREADY}") } else { String::new() };
            format!("{more} more{wanted}, {} in line{already}", change.seen.waiters)
        }
    };
    let time = format_rfc3339_millis(change.time);
    format!("{time}  {style}{word:8}{style:#}  {}  {detail}", change.seen.name)
}

/// Said of a lease that is older than the watch.
fn already(held: &Held) -> String {
    held.age.map_or_else(|| ALREADY.to_owned(), |age| format!("already held for {}", whole_seconds(age)))
}

fn lease(held: &Held) -> String {
    let token = match &held.holder {
        Holder::Leasehold { tokens, .. } => Cow::from(format!(", token {tokens}")),
        Holder::Foreign => "".into(),
    };
    let mode = match held.mode {
        Mode::Exclusive => Cow::from(""),
        Mode::Permits { limit, .. } => format!(", slot {} of {limit}", held.slots).into(),
        Mode::Shared | _ => format!(", {}", held.mode.kind()).into(),
    };
    format!("{}{token}{mode}", name_of(Some(&held.holder)))
}
