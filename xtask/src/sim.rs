//! `cargo xtask sim`: many seeds of the simulator.

use anyhow::Result;

use crate::step;

/// How many seeds are played of each half where nothing is said.
const SEEDS: &str = "20000";

/// Plays seeds; `--seeds`, `--first` and the like go on to the simulator.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut line = vec!["run", "--release", "--package", "lock-sim", "--bin", "sim", "--"];
    if !arguments.iter().any(|argument| argument == "--seeds") {
        line.extend(["--seeds", SEEDS]);
    }
    line.extend(arguments.iter().map(String::as_str));
    step::cargo(&line)
}
