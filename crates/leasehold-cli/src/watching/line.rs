//! An event as one line.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use humantime::format_rfc3339_millis;
use lock_core::inspect::Held;
use lock_core::{Holder, Mode, ModeKind};
use serde::Serialize;

use super::events::{Change, Event, Way};
use crate::durations::whole_seconds;
use crate::holders::name_of;
use crate::look::Lease;

/// Said of a state that is older than the watch, if its age is unknown.
const ALREADY: &str = "already when the watch began";

/// An event for scripts.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    time: String,
    /// `acquired`, `queued`, `released`, `lost`, `broken` or `ended`.
    event: &'static str,
    name: &'a str,
    /// Whether it was so when the watch began.
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
    fn from(change: &'a Change) -> Self {
        let (lease, by, joined, wanted) = match &change.event {
            Event::Acquired(held) => (Some(held), None, None, None),
            Event::Over(held, Way::Broken(by)) => (Some(held), Some(by.to_string()), None, None),
            Event::Over(held, Way::Released | Way::Lost | Way::Ended) => (Some(held), None, None, None),
            Event::Queued(more, wanted) => (None, None, Some(*more), wanted.map(Mode::kind)),
        };
        Line {
            time: format_rfc3339_millis(change.time).to_string(),
            event: word(&change.event).0,
            name: change.name.as_str(),
            already: change.already,
            lease: lease.map(Lease::from),
            by,
            joined,
            wanted,
            waiters: change.waiters,
        }
    }
}

/// The event in a word, and its colour on a terminal.
fn word(event: &Event) -> (&'static str, Style) {
    let (word, colour) = match event {
        Event::Acquired(_) => ("acquired", AnsiColor::Green),
        Event::Queued(..) => ("queued", AnsiColor::Cyan),
        Event::Over(_, Way::Released) => ("released", AnsiColor::Blue),
        Event::Over(_, Way::Lost) => ("lost", AnsiColor::Red),
        Event::Over(_, Way::Broken(_)) => ("broken", AnsiColor::Yellow),
        Event::Over(_, Way::Ended) => ("ended", AnsiColor::Yellow),
    };
    (word, colour.on_default())
}

/// An event for display.
pub(super) fn text(change: &Change) -> String {
    let (word, style) = word(&change.event);
    let detail = match &change.event {
        Event::Acquired(held) if change.already => format!("{}, {}", lease(held), already(held)),
        Event::Acquired(held) => lease(held),
        Event::Over(held, Way::Broken(by)) => format!("{}, broken by {by}", lease(held)),
        Event::Over(held, Way::Released | Way::Lost | Way::Ended) => lease(held),
        Event::Queued(more, wanted) => {
            let wanted = wanted.map_or_else(String::new, |mode| format!(" ({})", mode.kind()));
            let already = if change.already { format!(", {ALREADY}") } else { String::new() };
            format!("{more} more{wanted}, {} in line{already}", change.waiters)
        }
    };
    let time = format_rfc3339_millis(change.time);
    format!("{time}  {style}{word:8}{style:#}  {}  {detail}", change.name)
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
