//! An event as one line.

use std::borrow::Cow;
use std::time::SystemTime;

use anstyle::AnsiColor;
use humantime::format_rfc3339_millis;
use leasehold::inspect::watch::{Change, Happened};
use leasehold::inspect::{Held, Mode};
use serde_json::{Value, json};

use crate::durations::whole_seconds;
use crate::holders::name_of;
use crate::listing::Lease;

/// Said of a state that is older than the watch, if its age is unknown.
const ALREADY: &str = "already when the watch began";

/// Something that has happened.
pub(super) struct Event<'a> {
    /// When it was seen.
    pub(super) time: SystemTime,
    /// Whether the lock was already held when the watch began.
    pub(super) already: bool,
    pub(super) change: &'a Change,
}

/// An event for scripts: what the library writes, with `time` and `already`, and in its lease whether the process is `gone`.
pub(super) fn line(Event { time, already, change }: &Event<'_>) -> Value {
    let mut line = json!(change);
    line["lease"] = json!(change.happened.lease().map(Lease::from));
    line["time"] = format_rfc3339_millis(*time).to_string().into();
    line["already"] = (*already).into();
    line
}

/// An event for display.
pub(super) fn text(Event { time, already, change }: &Event<'_>) -> String {
    let colour = match &change.happened {
        Happened::Acquired(_) => AnsiColor::Green,
        Happened::Queued { .. } => AnsiColor::Cyan,
        Happened::Released(_) => AnsiColor::Blue,
        Happened::Expired(_) => AnsiColor::Red,
        Happened::Revoked(..) | Happened::Ended(_) => AnsiColor::Yellow,
    };
    let detail = match &change.happened {
        Happened::Acquired(held) if *already => {
            let since = held.age.map(|age| format!("already held for {}", whole_seconds(age)));
            format!("{}, {}", lease(held), since.as_deref().unwrap_or(ALREADY))
        }
        Happened::Revoked(held, by) => format!("{}, broken by {by}", lease(held)),
        // That its process has ended by now says nothing of a lease that it released.
        Happened::Released(held) => lease_of(held, &held.holder.to_string()),
        Happened::Acquired(held) | Happened::Expired(held) | Happened::Ended(held) => lease(held),
        Happened::Queued { more, wanted } => {
            let wanted = wanted.map_or_else(String::new, |mode| format!(" ({})", mode.kind()));
            let already = if *already { format!(", {ALREADY}") } else { String::new() };
            format!("{more} more{wanted}, {} in line{already}", change.waiters)
        }
    };
    let (time, style, word) = (format_rfc3339_millis(*time), colour.on_default(), change.happened.word());
    format!("{time}  {style}{word:8}{style:#}  {}  {detail}", change.name)
}

fn lease(held: &Held) -> String {
    lease_of(held, &name_of(Some(&held.holder)))
}

fn lease_of(held: &Held, holder: &str) -> String {
    let token = held.holder.tokens().map_or_else(String::new, |tokens| format!(", token {tokens}"));
    let mode = match held.mode {
        Mode::Exclusive => Cow::from(""),
        Mode::Permits { limit, .. } => format!(", slot {} of {limit}", held.slots).into(),
        Mode::Shared | _ => format!(", {}", held.mode.kind()).into(),
    };
    format!("{holder}{token}{mode}")
}
