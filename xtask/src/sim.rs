//! `cargo xtask sim`: many seeds of the simulator.

use std::process::Command;

use anyhow::Result;

use crate::step;

/// How many seeds of each half are played by default.
const SEEDS: &str = "20000";

/// The halves, and how many seeds of each are played. Those for a change take about a minute of processor time together.
const HALVES: [(&str, Seeds); 9] = [
    ("redis", Seeds { some: "2000", many: "20000" }),
    ("memory", Seeds { some: "2000", many: "20000" }),
    ("session", Seeds { some: "1000", many: "8000" }),
    ("leased", Seeds { some: "1000", many: "8000" }),
    ("replicated", Seeds { some: "1000", many: "4000" }),
    ("failovers", Seeds { some: "2000", many: "8000" }),
    ("hand-overs", Seeds { some: "500", many: "8000" }),
    ("quorum", Seeds { some: "2000", many: "20000" }),
    ("plots", Seeds { some: "500", many: "8000" }),
];

/// How many seeds are played.
struct Seeds {
    /// For each change.
    some: &'static str,
    /// Each night.
    many: &'static str,
}

/// Plays seeds; `--seeds`, `--first` and the like are passed on to the simulator.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut line = vec!["run", "--release", "--package", "lock-sim", "--bin", "sim", "--"];
    if !arguments.iter().any(|argument| argument == "--seeds") {
        line.extend(["--seeds", SEEDS]);
    }
    line.extend(arguments.iter().map(String::as_str));
    step::cargo(&line)
}

/// Plays some seeds of each half by the program that `test::run` has built: with assertions, and with the features of the whole workspace.
/// Cargo would build it and what it depends on again, with fewer features.
pub(crate) fn some() -> Result<()> {
    HALVES.iter().try_for_each(|(half, seeds)| {
        let mut play = Command::new(step::target().join("debug/sim"));
        play.args(["--half", half, "--seeds", seeds.some]);
        step::run(play)
    })
}

/// Plays many seeds of each half.
pub(crate) fn many() -> Result<()> {
    HALVES.iter().try_for_each(|(half, seeds)| run(&["--half", half, "--seeds", seeds.many].map(str::to_owned)))
}
