//! `leasehold ls` and `leasehold show`.

use std::time::Duration;

use comfy_table::Cell;
use lock_core::Holder;
use lock_core::inspect::Entry;
use serde::Serialize;

use crate::args::{LsArgs, ShowArgs};
use crate::durations::{human, millis};
use crate::exit::{Exit, Failure};
use crate::locks::{Locks, is_gone};
use crate::report::{json, print};
use crate::store::Store;
use crate::table::{Column, draw};

/// Lists what is held.
pub(crate) fn ls(args: &LsArgs) -> Result<Exit, Failure> {
    let locks = Locks::connect(&Store::choose(args.store.url.as_deref())?.that_shows_its_locks()?)?;
    let mut entries = locks.list(&args.pattern)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries.dedup_by(|a, b| a.name == b.name);
    if args.json {
        return print(&json(&entries.iter().map(Row::from).collect::<Vec<_>>())?);
    }
    if entries.is_empty() {
        return print(&nothing_held(&args.pattern));
    }
    print(&table(&entries))
}

fn nothing_held(pattern: &str) -> String {
    if pattern == "*" { "no lock is held".to_owned() } else { format!("no held lock matches {pattern:?}") }
}

/// Shows one lock.
pub(crate) fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let locks = Locks::connect(&Store::choose(args.store.url.as_deref())?.that_shows_its_locks()?)?;
    let entry = locks.holder(&args.name)?;
    if args.json {
        let row = entry.as_ref().map_or_else(|| Row::free(args.name.as_str()), Row::from);
        return print(&json(&row)?);
    }
    match entry {
        Some(entry) => print(&table(&[entry])),
        None => print(&format!("lock {:?} is not held", args.name.as_str())),
    }
}

/// One lock, for scripts.
#[derive(Debug, Serialize)]
struct Row<'a> {
    name: &'a str,
    held: bool,
    /// Whether the holder uses this library.
    leasehold: bool,
    pid: Option<u32>,
    host: Option<&'a str>,
    /// Whether the holder is a process of this host that has ended; null if unknown.
    gone: Option<bool>,
    why: Option<&'a str>,
    /// The highest token of the lease.
    token: Option<u64>,
    /// Until the lease ends unless it is renewed; null if it never expires.
    remaining_ms: Option<u64>,
    waiters: u32,
}

impl<'a> Row<'a> {
    fn free(name: &'a str) -> Self {
        Row {
            name,
            held: false,
            leasehold: false,
            pid: None,
            host: None,
            gone: None,
            why: None,
            token: None,
            remaining_ms: None,
            waiters: 0,
        }
    }
}

impl<'a> From<&'a Entry> for Row<'a> {
    fn from(entry: &'a Entry) -> Self {
        let remaining_ms = entry.remaining.map(millis);
        let row = Row { held: true, remaining_ms, waiters: entry.waiters, ..Row::free(entry.name.as_str()) };
        match &entry.holder {
            Holder::Leasehold { tokens, note } => Row {
                leasehold: true,
                pid: note.pid(),
                host: Some(note.host()),
                gone: is_gone(&entry.holder),
                why: Some(note.why()),
                token: Some(tokens.high().get()),
                ..row
            },
            Holder::Foreign => row,
        }
    }
}

const COLUMNS: [Column; 6] = [
    Column::new("NAME"),
    Column::new("HOLDER"),
    Column::new("WHY").dropped(0),
    Column::new("TOKEN").right(),
    Column::new("REMAINING").right(),
    Column::new("WAITERS").right().dropped(1),
];

fn table(entries: &[Entry]) -> String {
    draw(&COLUMNS, entries.iter().map(cells))
}

fn cells(entry: &Entry) -> Vec<Cell> {
    let (holder, why, token) = match &entry.holder {
        Holder::Leasehold { tokens, note } => {
            let place =
                note.pid().map_or_else(|| note.host().to_owned(), |pid| format!("pid {pid} on {}", note.host()));
            let place = if is_gone(&entry.holder) == Some(true) { format!("{place} (gone)") } else { place };
            (place, note.why().to_owned(), tokens.to_string())
        }
        Holder::Foreign => (entry.holder.to_string(), String::new(), String::new()),
    };
    vec![
        Cell::new(&entry.name),
        Cell::new(holder),
        Cell::new(why),
        Cell::new(token),
        Cell::new(remaining(entry.remaining)),
        Cell::new(entry.waiters),
    ]
}

fn remaining(left: Option<Duration>) -> String {
    left.map_or_else(|| "never expires".to_owned(), |left| human(left).to_string())
}

#[cfg(test)]
mod tests {
    use lock_core::{Note, TokenRange, Width};

    use super::*;

    fn held_by(holder: Holder, remaining: Option<Duration>) -> Entry {
        Entry::exclusive("nightly".parse().unwrap(), holder, remaining, 3)
    }

    fn elsewhere(note: &str) -> Entry {
        let tokens = TokenRange::above(6, Width::for_waiters(2)).unwrap();
        held_by(Holder::Leasehold { tokens, note: Note::from_wire(note) }, Some(Duration::from_millis(1500)))
    }

    fn shown(entry: &Entry) -> Vec<String> {
        cells(entry).iter().map(Cell::content).collect()
    }

    #[test]
    fn a_lock_is_shown_with_all_that_is_known_of_its_holder() {
        let entry = elsewhere("17@no-such-host the books");
        assert_eq!(shown(&entry), ["nightly", "pid 17 on no-such-host", "the books", "7..8", "1s 500ms", "3"]);
        let row = serde_json::to_value(Row::from(&entry)).unwrap();
        let expected = serde_json::json!({
            "name": "nightly", "held": true, "leasehold": true, "pid": 17, "host": "no-such-host", "gone": null,
            "why": "the books", "token": 8, "remaining_ms": 1500, "waiters": 3,
        });
        assert_eq!(row, expected);
        assert_eq!(shown(&elsewhere("?@no-such-host"))[1], "no-such-host");
    }

    #[test]
    fn a_lock_of_something_foreign_says_little() {
        let entry = held_by(Holder::Foreign, None);
        assert_eq!(shown(&entry), ["nightly", "something other than leasehold", "", "", "never expires", "3"]);
        let row = serde_json::to_value(Row::from(&entry)).unwrap();
        assert_eq!((&row["held"], &row["leasehold"]), (&true.into(), &false.into()));
        assert!(row["token"].is_null() && row["remaining_ms"].is_null());
    }

    #[test]
    fn a_holder_of_this_host_that_has_ended_is_gone() {
        let host = lock_host::host_name();
        let ended = elsewhere(&format!("{}@{host}", i32::MAX));
        assert_eq!(shown(&ended)[1], format!("pid {} on {host} (gone)", i32::MAX));
        assert_eq!(serde_json::to_value(Row::from(&ended)).unwrap()["gone"], true);
        let here = elsewhere(&format!("{}@{host}", std::process::id()));
        assert_eq!(shown(&here)[1], format!("pid {} on {host}", std::process::id()));
    }
}
