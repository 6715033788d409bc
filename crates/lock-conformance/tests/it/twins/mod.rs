//! Twins of the reference backend that are each broken in one way, to see that the suite catches them.
//!
//! Each twin fails the cases that are named for it, in both facades, and only because of its fault: the same cases are
//! true of the reference backend, and others are true of the twin.

mod answering;
mod barging;
mod cover;
mod dead;
mod holding;
mod keeping;
mod kinds;
mod lasting;
mod latching;
mod limits;
mod modes;
mod ordering;
mod processes;
mod replacing;
mod rules;
mod telling;
mod tickets;

use std::panic::catch_unwind;

use lock_conformance::{Absent, CASES, Case, Facade, Fault, Harness, Need, case, run};

use cover::{Breakage, Broken};

const COLOURS: [Facade; 2] = [Facade::Nonblocking, Facade::Blocking];

/// Makes one test for each twin, and the list of the cases that catch one.
macro_rules! twins {
    ($($name:ident: $breakage:ty, caught by [$($caught:literal),*], spared by [$($spared:literal),*];)*) => {
        pub(super) const CAUGHT: &[&str] = &[$($($caught),*),*];

        $(#[test]
        fn $name() {
            super::is_spared::<$breakage>(&[$($spared),*]);
            super::is_caught::<super::cover::Broken<$breakage, { super::cover::NO_TIME }>>("", &[$($caught),*]);
        })*
    };
}
use twins;

/// The cases fail on this twin, in both facades.
fn is_caught<H: Harness>(module: &'static str, paths: &[&'static str]) {
    for facade in COLOURS {
        for path in paths {
            let outcome = catch_unwind(|| run::<H>(facade, case(path), module, &Absent::new()));
            assert!(outcome.is_err(), "{facade}::{path} does not catch the twin");
        }
    }
}

/// The cases do not fail on this twin: its fault is nothing to them.
fn is_spared<B: Breakage>(paths: &[&'static str]) {
    for facade in COLOURS {
        for path in paths {
            spare::<B>(facade, case(path));
        }
    }
}

fn spare<B: Breakage>(facade: Facade, case: &Case) {
    run::<Broken<B, { cover::ALL_TIME }>>(facade, case, "", &Absent::new());
}

/// The twin without a fault.
#[derive(Default)]
struct Sound;

impl Breakage for Sound {}

/// Whatever catches a twin catches its fault, and not that it is a twin.
#[test]
fn a_twin_without_a_fault_passes() {
    std::thread::scope(|scope| {
        for facade in COLOURS {
            scope.spawn(move || {
                CASES.iter().filter(|case| suits_memory(case)).for_each(|case| spare::<Sound>(facade, case))
            });
        }
    });
}

/// A store in memory is covered against these faults only: what it does about the others is the twin's fault.
fn suits_memory(case: &Case) -> bool {
    case.needs
        .iter()
        .all(|need| !matches!(need, Need::Fault(fault) if !matches!(fault, Fault::Cut | Fault::LoseReplies)))
}

/// Cases that no twin of a backend fails, and why.
const UNTRIED: [(&str, &str); 2] = [
    ("semaphores::wrong_numbers_are_invalid", "it is the client that refuses them, before it asks the store"),
    ("fencing::a_store_that_forgot_is_not_believed", "it is the client that must not believe, whatever the store says"),
];

#[test]
fn every_case_catches_a_twin() {
    let of_leases = [
        barging::CAUGHT,
        holding::CAUGHT,
        keeping::CAUGHT,
        lasting::CAUGHT,
        kinds::CAUGHT,
        modes::CAUGHT,
        replacing::CAUGHT,
        limits::CAUGHT,
        rules::CAUGHT,
        tickets::CAUGHT,
    ]
    .concat();
    let of_requests = [answering::CAUGHT, telling::CAUGHT, ordering::CAUGHT].concat();
    let caught = [&of_leases, &of_requests, latching::CAUGHT, processes::CAUGHT, dead::CAUGHT].concat();
    for case in CASES {
        let untried = UNTRIED.iter().any(|(path, _)| *path == case.path);
        assert_ne!(caught.contains(&case.path), untried, "{}: catches a twin, or says why not", case.path);
    }
}
