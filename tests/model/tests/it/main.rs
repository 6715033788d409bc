//! The form that is built keeps every claim, and of each broken form a certain claim falls.
//!
//! All explorations are exhaustive. `--nocapture` shows how many states each has, and how a claim falls.

#![allow(clippy::print_stdout, reason = "a test")]

mod guard;
mod names;

use quorum_model::Claim::{Distinct, RisesByHolds, RisesInTime, Undisturbed};
use quorum_model::{Bounds, Check, Claim, Guard, Quorum, Rounds, Rules};

const BUILT: Rules = Rules { rounds: Rounds::Fast, check: Check::Grant, guard: Guard::Complete };
const TWO_ROUNDS: Rules = Rules { rounds: Rounds::Two, ..BUILT };
const CALM: Bounds = Bounds { foreign: 0, crashes: 0, duplicates: 0 };
const OTHER_LOCKS: Bounds = Bounds { foreign: 1, ..CALM };
const ONE_CRASH: Bounds = Bounds { crashes: 1, ..OTHER_LOCKS };

/// The claims that fall with `N` nodes and `C` clients.
fn refuted<const N: usize, const C: usize>(rules: Rules, bounds: Bounds) -> Vec<Claim> {
    let report = Quorum::<N, C> { rules, bounds }.explore();
    println!("{N} nodes, {C} clients, {rules:?}, {bounds:?}: {report}");
    report.refuted()
}

#[test]
fn two_rounds_keep_every_claim() {
    assert_eq!(refuted::<3, 2>(TWO_ROUNDS, CALM), []);
    assert_eq!(refuted::<3, 3>(TWO_ROUNDS, CALM), []);
    assert_eq!(refuted::<5, 2>(TWO_ROUNDS, CALM), []);
}

#[test]
fn the_fast_path_keeps_every_claim() {
    assert_eq!(refuted::<3, 2>(BUILT, CALM), []);
    assert_eq!(refuted::<3, 3>(BUILT, CALM), []);
    assert_eq!(refuted::<5, 2>(BUILT, CALM), []);
}

#[test]
fn other_locks_break_nothing() {
    assert_eq!(refuted::<3, 2>(BUILT, Bounds { foreign: 3, ..CALM }), []);
    assert_eq!(refuted::<3, 3>(BUILT, OTHER_LOCKS), []);
    assert_eq!(refuted::<5, 2>(TWO_ROUNDS, OTHER_LOCKS), []);
}

#[test]
fn nodes_that_forget_break_nothing_under_the_guard() {
    assert_eq!(refuted::<3, 2>(BUILT, ONE_CRASH), []);
    assert_eq!(refuted::<3, 2>(BUILT, Bounds { crashes: 2, ..CALM }), []);
}

#[test]
fn one_round_breaks_every_order() {
    let rules = Rules { rounds: Rounds::One, ..BUILT };
    assert_eq!(refuted::<3, 2>(rules, CALM), [Distinct, RisesByHolds]);
    assert_eq!(refuted::<3, 2>(rules, OTHER_LOCKS), [Distinct, RisesInTime, RisesByHolds]);
}

#[test]
fn without_a_check_two_can_have_one_token() {
    let rules = Rules { check: Check::Nothing, ..BUILT };
    assert_eq!(refuted::<3, 2>(rules, OTHER_LOCKS), [Distinct, RisesByHolds]);
    assert_eq!(refuted::<3, 2>(Rules { rounds: Rounds::Two, ..rules }, CALM), [Distinct, RisesByHolds]);
}

#[test]
fn a_check_of_the_counter_is_disturbed_by_other_locks() {
    let rules = Rules { check: Check::Counter, ..BUILT };
    assert_eq!(refuted::<3, 2>(rules, CALM), []);
    assert_eq!(refuted::<3, 2>(rules, OTHER_LOCKS), [Undisturbed]);
}

#[test]
fn each_part_of_the_guard_is_needed() {
    for guard in [Guard::Nothing, Guard::Abstain, Guard::Recover] {
        assert_eq!(refuted::<3, 2>(Rules { guard, ..BUILT }, ONE_CRASH), [Distinct, RisesInTime, RisesByHolds]);
    }
}

/// This is why an acquire is never sent again.
#[test]
fn an_acquire_that_arrives_twice_breaks_the_order_of_holds_alone() {
    assert_eq!(refuted::<3, 2>(BUILT, Bounds { duplicates: 1, ..OTHER_LOCKS }), [RisesByHolds]);
    assert_eq!(refuted::<3, 2>(BUILT, Bounds { duplicates: 2, ..CALM }), [RisesByHolds]);
}
