//! What locked functions do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod forms;
mod nonblocking;
mod plain;
mod support;

/// What is wrong is found by the compiler, which points at it. `TRYBUILD=overwrite` writes what it says now; review the diff.
#[test]
fn mistakes_are_pointed_at() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
