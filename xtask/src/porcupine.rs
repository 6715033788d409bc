//! What Porcupine, a checker that is not ours, says of the histories of storms. Go compiles it, and downloads it.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{services, step};

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
    let place = std::path::absolute(step::target().join(PLACE))?;
    // Git may refuse to say which commit this is, and nobody asks the checker.
    go(&["build", "-buildvcs=false", "-o", &place.to_string_lossy(), "."])
        .context("Porcupine could not be downloaded and compiled; nothing was checked")?;
    go(&["vet", "."])?;
    go(&["test", "."])?;
    let test = ["test", "--package", "stress", "--test", "porcupine", "--", "--ignored", "--nocapture", TESTS];
    step::cargo_with(("LEASEHOLD_STRESS_SECONDS", SECONDS), &test)
}

fn go(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("go");
    command.args(arguments).current_dir(step::root().join(PROGRAM));
    step::run(command)
}
