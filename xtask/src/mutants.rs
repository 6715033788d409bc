//! `cargo xtask mutants CRATE`: which small changes to a crate's code its tests do not notice.

use std::process::Command;

use anyhow::{Result, bail};

use crate::step;
use crate::tool::Tool;

const USAGE: &str = "\
usage: cargo xtask mutants CRATE [ARGUMENTS]...

  changes the code of one crate, one place at a time, and runs the crate's tests on each change: what survives is
  not tested. The results are in target/mutants/mutants.out. More arguments go to cargo-mutants, such as --jobs 2,
  --file 'crates/lock-core/src/station/*.rs', --shard 1/8 or --list. What is the same for all runs is in
  .cargo/mutants.toml.

  Each change costs a build of the crate's tests and a run of all of them. Where that takes long, name those that are
  meant: cargo xtask mutants lock-core --cargo-arg=--lib, or lock-sqlite --cargo-arg=--lib --cargo-arg=--test=sqlite.";

const CARGO_MUTANTS: Tool = Tool { name: "cargo-mutants", version: "27.1.0", options: &[] };

/// Runs the tool on one crate.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Some((package, more)) = arguments.split_first().filter(|(package, _)| !package.starts_with('-')) else {
        bail!("{USAGE}");
    };
    let mut command = Command::new(CARGO_MUTANTS.program()?);
    command.args(["mutants", "--package", package, "--output", "target/mutants"]).args(more).current_dir(step::root());
    // A change that breaks a property is caught. There is no need to search for the smallest case.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    step::run(command)
}
