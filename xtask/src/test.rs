//! `cargo xtask test`: all tests.

use anyhow::Result;

use crate::{services, step};

/// Runs every test of the workspace, and those beside other people's lock libraries.
pub(crate) fn run() -> Result<()> {
    services::all()?;
    step::cargo(&["test", "--workspace", "--all-features"])?;
    step::cargo(&["test", "--manifest-path", "tests/peers/Cargo.toml"])
}
