//! `cargo xtask test`: all tests.

use std::thread;

use anyhow::Result;

use crate::{services, step};

/// How many tests run at once for each core. Most of them wait: for a lease to end, or for a server.
const TESTS_PER_CORE: usize = 3;

/// Runs every test of the workspace, and those with other lock libraries.
pub(crate) fn run() -> Result<()> {
    services::all()?;
    let threads = (TESTS_PER_CORE * thread::available_parallelism()?.get()).to_string();
    step::cargo_with(("RUST_TEST_THREADS", &threads), &["test", "--workspace", "--all-features"])?;
    // The default features include no store, and its absence has tests, too.
    step::cargo(&["test", "--package", "leasehold", "--lib"])?;
    step::cargo(&["test", "--manifest-path", "tests/peers/Cargo.toml"])
}
