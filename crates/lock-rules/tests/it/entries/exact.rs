//! The decision, held against a slow one that tries every set of ends.

use std::iter;

use lock_rules::entries::{Decision, Entry, decide, holders};

/// Decides, after it has compared the decision with the slow one.
pub(super) fn decide_exactly<'a>(
    entries: &'a [Entry<usize>],
    me: &usize,
    capacity: u32,
) -> Option<Decision<'a, usize>> {
    let decision = decide(entries, me, capacity);
    let holding = holders(entries, capacity).map(|entry| entry.key).collect::<Vec<_>>();
    assert_eq!(holding.contains(me), decision == Some(Decision::Granted));
    match &decision {
        Some(Decision::Granted) => assert!(fits(entries, 0, *me, capacity)),
        Some(Decision::Waits { position, watched }) => {
            assert!(!fits(entries, 0, *me, capacity));
            let waiting = (0..*me).filter(|earlier| !holding.contains(earlier)).count();
            assert_eq!(*position as usize, waiting + 1);
            assert_watches_all(entries, *me, capacity, watched);
        }
        None => panic!("the entry is there"),
    }
    decision
}

/// Every set of ends that lets it in has an end that it watches, and without any of these that would not be so.
fn assert_watches_all(entries: &[Entry<usize>], me: usize, capacity: u32, watched: &[&usize]) {
    let set = watched.iter().fold(0, |set, entry| set | 1 << **entry);
    let lets_in = |ended: u8| ended & (1 << me) == 0 && fits(entries, ended, me, capacity);
    assert!((0..1 << entries.len()).filter(|ended| lets_in(*ended)).all(|ended| ended & set != 0));
    let all_but_me = (1 << entries.len()) - 1 - (1 << me);
    assert!(watched.iter().all(|entry| lets_in(all_but_me & !set | 1 << **entry)));
}

/// Whether an entry holds once these have ended, a bit for each.
fn fits(entries: &[Entry<usize>], ended: u8, me: usize, capacity: u32) -> bool {
    let stands = |entry: &&Entry<usize>| ended & (1 << entry.key) == 0;
    let counts = |entry: &&Entry<usize>| entry.key != me && (entry.key < me || entry.is_granted);
    let before = entries.iter().filter(stands).filter(counts);
    let weight: u64 = before.chain(iter::once(&entries[me])).map(|entry| u64::from(entry.weight)).sum();
    entries[me].is_granted || weight <= u64::from(capacity)
}
