//! Locks as a table.

use std::cmp::Reverse;
use std::time::Duration;

use comfy_table::Cell;
use leasehold::inspect::{Entry, Held, Mode, Waiter};
use leasehold::kit::Slot;

use super::order::natural;
use super::row::row;
use super::words::{holder, mode, process_of, remaining, wanted, why_and_token};
use crate::args::Sort;
use crate::durations::{age, whole_seconds};
use crate::exit::Failure;
use crate::report::json;
use crate::table::{Column, Drawn, draw};
use crate::visible::visible;

/// The locks in this order, and those that are alike in it in the order in which people read their names.
pub(super) fn sorted(entries: &[Entry], by: Sort) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    entries.sort_by(|a, b| natural(a.name.as_str(), b.name.as_str()));
    match by {
        Sort::Name => {}
        Sort::Held => entries.sort_by_key(|entry| Reverse(held_for(entry))),
        Sort::Waiters => entries.sort_by_key(|entry| Reverse(entry.waiters)),
    }
    entries
}

/// For how long somebody has held the lock. Nobody holds one that marks a slot.
fn held_for(entry: &Entry) -> Option<Duration> {
    let holds = Slot::marked_by(entry).is_none();
    entry.holders.iter().filter(|_| holds).filter_map(|held| held.age).max()
}

/// All of them, for scripts.
pub(super) fn shown_as_json(entries: &[Entry]) -> Result<String, Failure> {
    json(&entries.iter().map(row).collect::<Vec<_>>())
}

const COLUMNS: [Column; 9] = [
    Column::new("NAME").cut(12),
    Column::new("HOLDER").cut(16).dropped(7),
    Column::new("MODE").dropped(3),
    Column::new("WHY").cut(10).dropped(4),
    Column::new("TOKEN").right().dropped(2),
    Column::new("HELD").right().dropped(5),
    Column::new("REMAINING").right().dropped(1),
    Column::new("WAITERS").right().dropped(6),
    Column::new("QUEUE").cut(12).dropped(0),
];
/// The columns that say nothing while all hold their locks alone, and are left out then.
const OF_KINDS: [&str; 2] = ["MODE", "QUEUE"];

/// The index of the column HELD.
const HELD: usize = 5;

/// How many groups of the queue are shown at most; the JSON has all that the store shows.
const GROUPS_MAX: usize = 6;

/// All of them, for display. `endless` is shown for leases that have no remaining time.
pub(super) fn table(entries: &[Entry], endless: &str) -> Drawn {
    let kinds = entries.iter().any(has_kinds);
    let rows: Vec<_> = entries.iter().flat_map(|entry| rows(entry, endless)).collect();
    let since = rows.iter().any(|row| !row[HELD].content().is_empty());
    let shown = |column: &Column| match column.title() {
        "HELD" => since,
        title => kinds || !OF_KINDS.contains(&title),
    };
    let rows = rows.into_iter().map(|row| {
        row.into_iter().zip(&COLUMNS).filter(|(_, column)| shown(column)).map(|(cell, _)| cell).collect::<Vec<_>>()
    });
    draw(&COLUMNS.into_iter().filter(shown).collect::<Vec<_>>(), rows)
}

/// Whether anybody holds this lock, or waits for it, other than alone.
fn has_kinds(entry: &Entry) -> bool {
    entry
        .holders
        .iter()
        .map(|held| held.mode)
        .chain(entry.queue.iter().map(|waiter| waiter.mode))
        .any(|mode| mode != Mode::Exclusive)
}

/// A row for each holder. What concerns the whole lock is in the first.
fn rows(entry: &Entry, endless: &str) -> Vec<[Cell; 9]> {
    let is_mark = Slot::marked_by(entry).is_some();
    let cells = |held| if is_mark { mark_cells(held) } else { lease_cells(held, endless) };
    let mut rows: Vec<_> = entry.holders.iter().map(cells).collect();
    let shown = u32::try_from(entry.holders.len()).unwrap_or(u32::MAX);
    if entry.leases > shown {
        let mut more = [""; 9].map(Cell::new);
        more[1] = Cell::new(format!("and {} more", entry.leases - shown));
        rows.push(more);
    }
    if let Some([name, .., waiters, queue]) = rows.first_mut() {
        *name = Cell::new(visible(entry.name.as_str()));
        *waiters = Cell::new(entry.waiters);
        *queue = Cell::new(queued(entry));
    }
    rows
}

fn lease_cells(held: &Held, endless: &str) -> [Cell; 9] {
    let time_held = held.age.map_or_else(String::new, |held| age(held).to_string());
    cells_of(held, holder(held), time_held, remaining(held, endless))
}

/// The cells of a lock that marks a slot. Nobody holds it any more.
fn mark_cells(held: &Held) -> [Cell; 9] {
    let kept = held.remaining.map_or_else(String::new, |left| format!("kept for {}", whole_seconds(left)));
    cells_of(held, process_of(held), String::new(), kept)
}

fn cells_of(held: &Held, who: String, time_held: String, remaining: String) -> [Cell; 9] {
    let ([why, token], nothing) = (why_and_token(held), String::new);
    [nothing(), who, mode(held), why, token, time_held, remaining, nothing(), nothing()]
        .map(|text| Cell::new(visible(&text)))
}

/// The terms of the waiters, in their order: neighbours that ask for the same are one group.
fn queued(entry: &Entry) -> String {
    let groups: Vec<_> = entry.queue.chunk_by(|one, next| one.mode == next.mode).collect();
    let mut words: Vec<_> = groups.iter().take(GROUPS_MAX).filter_map(|group| group_of(group)).collect();
    if !entry.lists_all_waiters() || groups.len() > GROUPS_MAX {
        words.push("...".to_owned());
    }
    words.join(", ")
}

fn group_of(group: &[Waiter]) -> Option<String> {
    let wanted = wanted(group.first()?.mode);
    Some(if group.len() == 1 { wanted } else { format!("{wanted} x{}", group.len()) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::Holder;
    use leasehold::backend::{TokenRange, Width};
    use leasehold::inspect::{Note, Slots};

    use super::*;
    use crate::locks::NEVER_EXPIRES;

    fn held_by(holder: Holder, remaining: Option<Duration>) -> Entry {
        Entry::exclusive("nightly".parse().unwrap(), holder, remaining, 3)
    }

    fn elsewhere(note: &str) -> Entry {
        let tokens = TokenRange::above(6, Width::for_waiters(2)).unwrap();
        held_by(Holder::Leasehold { tokens, note: Note::from_wire(note) }, Some(Duration::from_millis(1500)))
    }

    fn shown(entry: &Entry) -> Vec<String> {
        rows(entry, NEVER_EXPIRES)[0].iter().map(Cell::content).collect()
    }

    fn permits(count: u32) -> Mode {
        Mode::permits(count, 4).unwrap()
    }

    #[test]
    fn a_lock_is_shown_with_all_that_is_known_of_its_holder() {
        let mut entry = elsewhere("17@no-such-host the books");
        entry.holders[0].age = Some(Duration::from_millis(125_900));
        assert_eq!(
            shown(&entry),
            ["nightly", "pid 17 on no-such-host", "exclusive", "the books", "7..8", "2m 5s", "2s", "3", "exclusive x3"]
        );
        let row = row(&entry);
        let alone = serde_json::json!({
            "leasehold": false, "pid": null, "host": null, "why": null, "mode": "exclusive", "permits": 0, "waiting_ms": null,
        });
        let expected = serde_json::json!({
            "name": "nightly", "held": true, "leasehold": true, "pid": 17, "host": "no-such-host", "gone": null,
            "why": "the books", "token": 8, "held_ms": 125_900, "remaining_ms": 1500, "waiters": 3, "kind": "lock", "limit": null, "leases": 1,
            "marks": null,
            "holders": [{
                "leasehold": true, "pid": 17, "host": "no-such-host", "gone": null, "why": "the books", "token": 8,
                "mode": "exclusive", "slots": [], "held_ms": 125_900, "remaining_ms": 1500,
            }],
            "queue": [alone, alone, alone],
        });
        assert_eq!(row, expected);
        assert_eq!(shown(&elsewhere("?@no-such-host"))[1], "no-such-host");
    }

    #[test]
    fn a_lock_of_something_foreign_says_little() {
        let entry = held_by(Holder::Foreign, None);
        assert_eq!(
            shown(&entry),
            [
                "nightly",
                "something other than leasehold",
                "exclusive",
                "",
                "",
                "",
                "never expires",
                "3",
                "exclusive x3"
            ]
        );
        let row = row(&entry);
        assert_eq!((&row["held"], &row["leasehold"]), (&true.into(), &false.into()));
        assert!(row["token"].is_null() && row["remaining_ms"].is_null());
    }

    #[test]
    fn a_holder_of_this_host_that_has_ended_is_gone() {
        let host = leasehold::inspect::host_name();
        let ended = elsewhere(&format!("{}@{host}", i32::MAX));
        assert_eq!(shown(&ended)[1], format!("pid {} on {host} (gone)", i32::MAX));
        assert_eq!(row(&ended)["gone"], true);
        let here = elsewhere(&format!("{}@{host}", std::process::id()));
        assert_eq!(shown(&here)[1], format!("pid {} on {host}", std::process::id()));
    }

    #[test]
    fn a_mark_of_a_slot_is_kept_and_its_run_has_ended_as_it_should() {
        let host = leasehold::inspect::host_name();
        let mut ended = elsewhere(&format!("{}@{host}", i32::MAX));
        let left = Some(Duration::from_millis(7 * 24 * 3600 * 1000 + 2500));
        ended.name = "nightly@2026-11-21T03:00:00Z".parse().unwrap();
        (ended.remaining, ended.holders[0].remaining) = (left, left);
        let cells = shown(&ended);
        assert_eq!((&*cells[1], &*cells[6]), (&*format!("pid {} on {host}", i32::MAX), "kept for 7days"));
        assert_eq!(row(&ended)["marks"], "2026-11-21T03:00:00Z");
    }

    #[test]
    fn all_holders_of_a_semaphore_are_shown_with_their_slots_and_the_queue() {
        let mut entry = elsewhere("17@no-such-host the books");
        entry.holders[0].mode = permits(2);
        entry.holders[0].slots = Slots::new([0, 3]);
        let other = Held { mode: permits(1), slots: Slots::new([1]), ..entry.holders[0].clone() };
        entry.holders.push(other);
        (entry.leases, entry.waiters) = (102, 4);
        let note = Some(Note::from_wire("18@h next"));
        let waiter = |count| Waiter { note: note.clone(), mode: permits(count), age: Some(Duration::from_secs(4)) };
        entry.queue = vec![waiter(3), waiter(1), waiter(1)];
        let text = table(std::slice::from_ref(&entry), NEVER_EXPIRES).table;
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].contains("MODE") && lines[0].ends_with("QUEUE"), "{text}");
        assert!(lines[1].contains("slots 0,3 of 4") && lines[1].ends_with("4  3 slots, 1 slot x2, ..."), "{text}");
        assert!(lines[2].contains("slot 1 of 4") && !lines[2].contains("nightly"), "{text}");
        assert_eq!((lines[3].trim(), lines.len()), ("and 100 more", 4), "{text}");
        let row = row(&entry);
        assert_eq!((&row["kind"], &row["limit"], &row["leases"]), (&"semaphore".into(), &4.into(), &102.into()));
        assert_eq!(row["holders"][0]["slots"], serde_json::json!([0, 3]));
        assert_eq!(
            row["queue"][0],
            serde_json::json!({
                "leasehold": true, "pid": 18, "host": "h", "why": "next", "mode": "permits", "permits": 3, "waiting_ms": 4000,
            })
        );
    }

    #[test]
    fn a_lock_that_nobody_holds_has_the_same_fields() {
        let (held, free) = (row(&elsewhere("17@no-such-host")), super::super::free(&"a".parse().unwrap()));
        let names = |row: &serde_json::Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&free), names(&held));
        assert_eq!(
            (&free["held"], &free["leases"], &free["gone"]),
            (&false.into(), &0.into(), &serde_json::Value::Null)
        );
    }

    #[test]
    fn locks_are_sorted_by_name_age_or_waiters() {
        let lock = |name: &str, age, waiters| {
            let mut entry = Entry { name: name.parse().unwrap(), waiters, ..elsewhere("17@no-such-host") };
            entry.holders[0].age = age;
            entry
        };
        let old = Some(Duration::from_secs(60));
        let entries = [lock("b", None, 7), lock("a10", old, 0), lock("a9", Some(Duration::ZERO), 7)];
        let names = |by| sorted(&entries, by).into_iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(Sort::Name), ["a9", "a10", "b"]);
        assert_eq!(names(Sort::Held), ["a10", "a9", "b"]);
        assert_eq!(names(Sort::Waiters), ["a9", "b", "a10"]);
    }

    #[test]
    fn modes_are_a_column_only_where_they_differ() {
        let alone = elsewhere("17@no-such-host");
        assert!(!table(std::slice::from_ref(&alone), NEVER_EXPIRES).table.contains("exclusive"));
        let mut read = alone.clone();
        read.holders[0].mode = Mode::Shared;
        let text = table(&[alone, read], NEVER_EXPIRES).table;
        assert!(text.contains("exclusive") && text.contains("shared"), "{text}");
    }
}
