//! Twins of the reference backend that are each broken in one way, to see that the suite catches them.
//!
//! Each twin must fail the cases that are named for it, in both faces, and only because of its fault: the same cases
//! are true of the reference backend.

mod answering;
mod cover;
mod holding;
mod processes;

use std::panic::catch_unwind;

use lock_conformance::{Colour, Harness, case, run};

/// Makes one test: the twin with this fault is caught by these cases, and spared by those.
macro_rules! twin {
    ($name:ident, $breakage:ty, caught by [$($caught:literal),*], spared by [$($spared:literal),*]) => {
        #[test]
        fn $name() {
            super::is_spared::<super::cover::Broken<$breakage>>(module_path!(), &[$($spared),*]);
            super::is_caught::<super::cover::Broken<$breakage>>(module_path!(), &[$($caught),*]);
        }
    };
}
use twin;

/// The cases fail on this twin, in both faces.
fn is_caught<H: Harness>(module: &'static str, paths: &[&'static str]) {
    for colour in [Colour::Nonblocking, Colour::Blocking] {
        for path in paths {
            let outcome = catch_unwind(|| run::<H>(colour, case(path), module));
            assert!(outcome.is_err(), "{colour}::{path} does not catch the twin");
        }
    }
}

/// The cases do not fail on this twin: its fault is nothing to them.
fn is_spared<H: Harness>(module: &'static str, paths: &[&'static str]) {
    for colour in [Colour::Nonblocking, Colour::Blocking] {
        for path in paths {
            run::<H>(colour, case(path), module);
        }
    }
}
