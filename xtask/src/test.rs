//! `cargo xtask test`: all tests.

use anyhow::Result;

use crate::{services, step};

/// Runs every test of the workspace, and those with other lock libraries.
pub(crate) fn run() -> Result<()> {
    services::all()?;
    step::cargo(&["test", "--workspace", "--all-features"])?;
    // The default features include no store, and its absence has tests, too.
    step::cargo(&["test", "--package", "leasehold", "--lib"])?;
    step::cargo(&["test", "--manifest-path", "tests/peers/Cargo.toml"])
}
