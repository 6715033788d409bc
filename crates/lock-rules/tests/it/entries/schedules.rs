//! Every schedule at a small size, for the decision and for its broken twins.

use lock_rules::entries::{Decision, Entry, WHOLE, decide, holders};

use super::exact::decide_exactly;
use super::explore::{Counterexample, explore, play};
use super::model::{Decide, Event, Fault, Grants, Setup, Writes};

const MUTEX: Setup = Setup {
    entries: 5,
    weights: &[WHOLE],
    capacities: &[WHOLE],
    grants: Grants::ByOrder,
    writes: Writes::Compared,
    decide: decide_exactly,
};
const READERS: Setup = Setup { weights: &[1, WHOLE], ..MUTEX };
const PERMITS: Setup = Setup { weights: &[1, 2, 3], capacities: &[1, 2, 3], ..MUTEX };

const fn by_store(setup: Setup) -> Setup {
    Setup { grants: Grants::ByStore, ..setup }
}

fn states(setup: &Setup) -> usize {
    explore(setup).unwrap_or_else(|found| panic!("{}", found.as_text()))
}

/// Two hold, two wait, and both holders leave one after the other.
const TWO_LEAVE: [Event; 14] = [
    Event::Arrives(1),
    Event::Decides(0),
    Event::Writes(0),
    Event::Arrives(1),
    Event::Decides(1),
    Event::Writes(1),
    Event::Arrives(1),
    Event::Decides(2),
    Event::Arrives(1),
    Event::Decides(3),
    Event::Ends(0),
    Event::Decides(1),
    Event::Writes(1),
    Event::Ends(0),
];

/// What the model finds of a broken twin.
fn found(setup: Setup, twin: Decide) -> String {
    let explored = explore(&Setup { decide: twin, ..setup });
    explored.as_ref().map_or_else(Counterexample::as_text, |states| format!("nothing in {states} states"))
}

#[test]
fn no_waiter_that_fits_sleeps_where_the_order_decides() {
    assert_eq!([MUTEX, READERS, PERMITS].map(|setup| states(&setup)), [94, 2707, 19_110]);
}

#[test]
fn no_waiter_that_fits_sleeps_where_the_store_says_who_was_granted() {
    let setups = [MUTEX, READERS, PERMITS].map(by_store);
    assert_eq!(setups.map(|setup| states(&setup)), [274, 7620, 419_736]);
}

#[test]
fn a_waiter_that_watches_its_predecessor_alone_sleeps() {
    fn twin<'a>(entries: &'a [Entry<usize>], me: &usize, capacity: u32) -> Option<Decision<'a, usize>> {
        let decision = decide(entries, me, capacity)?;
        let Decision::Waits { position, .. } = decision else { return Some(decision) };
        let watched = entries[..*me].last().map(|entry| &entry.key).into_iter().collect();
        Some(Decision::Waits { position, watched })
    }
    assert_eq!(found(MUTEX, twin), "nothing in 94 states");
    let schedule =
        "limit all, A arrives for all, B arrives for 1, C arrives for 1, C decides, A ends: C fits and sleeps";
    assert_eq!(found(READERS, twin), schedule);
    let schedule = "limit 2, A arrives for 1, B arrives for 1, C arrives for 1, C decides, A ends: C fits and sleeps";
    assert_eq!(found(PERMITS, twin), schedule);
}

/// The first waiter watches the right entries, and the others their predecessors.
#[test]
fn a_waiter_behind_others_that_watches_its_predecessor_alone_sleeps() {
    fn twin<'a>(entries: &'a [Entry<usize>], me: &usize, capacity: u32) -> Option<Decision<'a, usize>> {
        let decision = decide(entries, me, capacity)?;
        let Decision::Waits { position: position @ 2.., .. } = decision else { return Some(decision) };
        Some(Decision::Waits { position, watched: vec![&entries[*me - 1].key] })
    }
    let schedule = "limit 2, A arrives for 2, B arrives for 1, C arrives for 1, C decides, A ends: C fits and sleeps";
    assert_eq!(found(PERMITS, twin), schedule);
    assert_eq!(play(&PERMITS, 2, &TWO_LEAVE).map(|state| state.clients.len()), Ok(2));
    let faulty = Setup { decide: twin, ..PERMITS };
    assert_eq!(play(&faulty, 2, &TWO_LEAVE), Err(Fault::Sleeps { entry: 1 }));
}

#[test]
fn without_the_granted_entries_behind_a_waiter_too_many_hold() {
    fn twin<'a>(entries: &'a [Entry<usize>], me: &usize, capacity: u32) -> Option<Decision<'a, usize>> {
        decide(&entries[..=*me], me, capacity)
    }
    assert_eq!(found(PERMITS, twin), "nothing in 19110 states");
    let schedule =
        "limit all, A barges for 1, B arrives for all, C for 1 replaces A, B decides, B is granted: too many hold";
    assert_eq!(found(by_store(READERS), twin), schedule);
    let schedule =
        "limit 1, A barges for 1, B arrives for 1, C for 1 replaces A, B decides, B is granted: too many hold";
    assert_eq!(found(by_store(PERMITS), twin), schedule);
}

#[test]
fn by_the_order_alone_a_limit_that_falls_takes_permits() {
    fn twin<'a>(entries: &'a [Entry<usize>], me: &usize, capacity: u32) -> Option<Decision<'a, usize>> {
        let ordered: Vec<_> = entries.iter().map(|entry| Entry { is_granted: false, ..*entry }).collect();
        let loses = entries[*me].is_granted && holders(&ordered, capacity).all(|entry| entry.key != *me);
        if loses { None } else { decide(entries, me, capacity) }
    }
    assert_eq!(found(by_store(PERMITS), twin), "limit 2, A barges for 2, limit 1: A loses its hold");
}

#[test]
fn with_grants_that_do_not_compare_the_limit_too_many_hold() {
    let faulty = Setup { writes: Writes::Blind, ..by_store(PERMITS) };
    assert_eq!(found(faulty, decide), "limit 2, A arrives for 2, A decides, limit 1, A is granted: too many hold");
}
