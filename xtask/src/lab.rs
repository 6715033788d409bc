//! `cargo xtask lab`: what goes wrong without each part of a lock.

use anyhow::Result;

use crate::step;

/// Plays the scene of these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let line = ["run", "--quiet", "--package", "leasehold-lab", "--"];
    step::cargo(&line.into_iter().chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>())
}
