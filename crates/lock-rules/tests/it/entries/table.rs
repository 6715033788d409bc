//! What the decision is in some situations, as a reviewed table: `table.txt` beside this file.
//!
//! A row has the entries in their order: `w` is a writer, `r` a reader, and a number a request for permits. After `!` the store says
//! that it holds. Below are the decisions. After a change, run this test with `LEASEHOLD_BLESS=1` and review the difference.

use std::path::PathBuf;

use lock_core::Mode;
use lock_rules::entries::{Decision, Entry, WHOLE, decide, holders, weight};

/// The limit, 0 for a lock, and the entries.
const SITUATIONS: &[(&str, u32, &str)] = &[
    ("a free lock is taken", 0, "w"),
    ("a waiter for a mutex watches its predecessor alone", 0, "w w w w"),
    ("the store may also say who holds a mutex", 0, "w! w w"),
    ("readers hold together", 0, "r r r"),
    ("a writer behind readers watches one of them", 0, "r r r w"),
    ("a reader watches the last writer before it", 0, "r w r w r r"),
    ("a writer behind waiting readers watches the last of them", 0, "w r r w"),
    ("the readers behind a writer that holds wait for it", 0, "w r r"),
    ("the readers before the first writer hold", 0, "r r w r w"),
    ("a writer became a reader behind a writer that waits", 0, "w r r!"),
    ("a reader was granted past a writer that waits", 0, "r! w r!"),
    ("permits are granted while they fit", 3, "1 1 1"),
    ("the first waiter for a permit watches all holders of one", 2, "1! 1! 1"),
    ("a waiter behind others watches as many entries", 2, "1! 1! 1 1 1 1"),
    ("the holder of all permits is watched like that of a mutex", 2, "2! 2 2"),
    ("a heavy waiter at the head blocks lighter ones", 3, "2! 2 1 1"),
    ("an entry whose end alone lets nobody in is not watched", 4, "1! 3! 2 1"),
    ("a heavy waiter watches one entry of each set of ends that lets it in", 4, "1! 1! 2! 3"),
    ("a waiter for all permits watches the last entry", 3, "1! 1! 1! 3"),
    ("three entries fit, and two of them have not decided yet", 3, "1! 1 1 1 1"),
    ("an entry that was granted past the queue counts", 3, "1! 3 1!"),
    ("two entries were granted past the queue", 3, "2 1! 1!"),
    ("a limit that fell takes permits from nobody", 2, "1! 3! 1"),
    ("after a limit fell, several ends let a waiter in", 2, "1! 1! 1! 1! 1"),
    ("a request above the limit waits for a higher one, and blocks the others", 2, "1! 3 1 1"),
    ("a request above the limit of a free semaphore", 2, "3"),
];

fn letter(key: usize) -> char {
    ('A'..).nth(key).unwrap()
}

fn entry((key, text): (usize, &str)) -> Entry<char> {
    let (what, is_granted) = text.strip_suffix('!').map_or((text, false), |what| (what, true));
    let mode = match what {
        "w" => Mode::Exclusive,
        "r" => Mode::Shared,
        count => Mode::permits(count.parse().unwrap(), Mode::LIMIT_MAX).unwrap(),
    };
    Entry { key: letter(key), weight: weight(mode), is_granted }
}

fn decision(entries: &[Entry<char>], me: char, capacity: u32) -> String {
    match decide(entries, &me, capacity).unwrap() {
        Decision::Granted => format!("{me} holds"),
        Decision::Waits { position, watched } if watched.is_empty() => {
            format!("{me} waits at {position}, watches nobody")
        }
        Decision::Waits { position, watched } => {
            format!("{me} waits at {position}, watches {}", watched.into_iter().collect::<String>())
        }
    }
}

fn row(&(title, limit, situation): &(&str, u32, &str)) -> String {
    let entries: Vec<_> = situation.split(' ').enumerate().map(entry).collect();
    let shown: Vec<_> =
        entries.iter().zip(situation.split(' ')).map(|(entry, text)| format!("{} {text}", entry.key)).collect();
    let (kind, capacity) = if limit == 0 { ("lock".to_owned(), WHOLE) } else { (format!("limit {limit}"), limit) };
    let decisions: Vec<_> = entries.iter().map(|entry| decision(&entries, entry.key, capacity)).collect();
    format!("{title}\n    {kind}: {}\n    {}\n", shown.join(", "), decisions.join("; "))
}

#[test]
fn every_situation_is_reviewed() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/entries/table.txt");
    let found: String = SITUATIONS.iter().map(row).collect();
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if expected != found && std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    assert_eq!(
        expected, found,
        "if the change is meant, run this test with LEASEHOLD_BLESS=1 and review the difference"
    );
}

#[test]
fn an_entry_that_is_gone_has_no_decision() {
    assert_eq!(decide(&[entry((0, "w"))], &'B', WHOLE), None);
    assert_eq!(decide(&[], &'A', WHOLE), None);
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let entries = [0, 1, 2].map(|key| Entry { key, weight: u32::MAX, is_granted: key != 2 });
    assert_eq!(holders(&entries, u32::MAX).count(), 2);
    assert_eq!(decide(&entries, &2, u32::MAX), Some(Decision::Waits { position: 1, watched: vec![&1] }));
    assert_eq!(decide(&entries, &2, 0), Some(Decision::Waits { position: 1, watched: vec![] }));
}
