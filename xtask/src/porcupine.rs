//! What Porcupine, a checker that is not ours, says of the histories of storms. Go compiles it, and downloads it.

use anyhow::{Context, Result};

use crate::{go, services, step};

/// What to compile.
const PROGRAM: &str = "tests/porcupine";
/// Where the tests look for it, below the target.
const PLACE: &str = "servers/porcupine/checker";
/// How long the storm lasts.
const SECONDS: &str = "60";
/// What the names of these tests begin with.
pub(crate) const TESTS: &str = "porcupine_";

/// Compiles the checker, tests it, and has it check storms.
pub(crate) fn run() -> Result<()> {
    services::for_porcupine()?;
    go::compile(PROGRAM, PLACE).context("Porcupine could not be downloaded and compiled; nothing was checked")?;
    go::go(PROGRAM, &["vet", "."])?;
    go::go(PROGRAM, &["test", "."])?;
    let test = ["test", "--package", "stress", "--test", "porcupine", "--", "--ignored", "--nocapture", TESTS];
    step::cargo_with(("LEASEHOLD_STRESS_SECONDS", SECONDS), &test)
}
