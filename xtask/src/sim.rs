//! `cargo xtask sim`: many seeds of the simulator.

use anyhow::Result;

use crate::step;

/// How many seeds of each half are played by default.
const SEEDS: &str = "20000";

/// Plays seeds; `--seeds`, `--first` and the like are passed on to the simulator.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut line = vec!["run", "--release", "--package", "lock-sim", "--bin", "sim", "--"];
    if !arguments.iter().any(|argument| argument == "--seeds") {
        line.extend(["--seeds", SEEDS]);
    }
    line.extend(arguments.iter().map(String::as_str));
    step::cargo(&line)
}
