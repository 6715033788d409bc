//! `cargo xtask test`: all tests that a change can break.

use std::thread;

use anyhow::Result;

use crate::{services, step};

/// How many tests run at once for each core. Most of them wait: for a lease to end, or for a server.
const TESTS_PER_CORE: usize = 6;

/// How long each test with random input reads, in seconds: for each change, and each night.
const FUZZ_SECONDS: [&str; 2] = ["1", "20"];

/// Runs the tests of the workspace.
pub(crate) fn run() -> Result<()> {
    services::for_tests()?;
    tests(FUZZ_SECONDS[0], &[])?;
    // The default features include no store, and its absence has tests, too.
    step::cargo(&["test", "--package", "leasehold", "--lib"])
}

/// Runs them with those that are ignored otherwise.
pub(crate) fn all() -> Result<()> {
    services::all()?;
    tests(FUZZ_SECONDS[1], &["--", "--include-ignored"])?;
    step::cargo(&["test", "--package", "leasehold", "--lib"])
}

/// Runs the tests beside other lock libraries.
pub(crate) fn peers() -> Result<()> {
    step::cargo(&["test", "--manifest-path", "tests/peers/Cargo.toml"])
}

fn tests(fuzz_seconds: &str, arguments: &[&str]) -> Result<()> {
    let every = ["test", "--workspace", "--all-features"];
    step::cargo(&[&every[..], &["--no-run"]].concat())?;
    let mut command = step::command(&[&every[..], arguments].concat());
    command.env("RUST_TEST_THREADS", (TESTS_PER_CORE * thread::available_parallelism()?.get()).to_string());
    command.env("LEASEHOLD_FUZZ_SECONDS", fuzz_seconds);
    step::run(command)
}
