//! `cargo xtask mutants CRATE`: which small changes of a crate's code none of its tests notices.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::step;

const USAGE: &str = "\
usage: cargo xtask mutants CRATE [ARGUMENTS]...

  changes the code of one crate, one place at a time, and runs the crate's tests on each change: what survives is
  not tested. The results are in target/mutants/mutants.out. More arguments go to cargo-mutants, such as
  --file 'crates/lock-core/src/station/*.rs', --shard 1/8 or --list.";

/// The tool, which is built into the target directory when it is first needed.
const VERSION: &str = "27.1.0";

/// Runs the tool on one crate.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Some((package, more)) = arguments.split_first().filter(|(package, _)| !package.starts_with('-')) else {
        bail!("{USAGE}");
    };
    let tools = step::root().join("target/tools");
    let program = tools.join("bin/cargo-mutants");
    if !has_version(&program) {
        let root = tools.to_string_lossy();
        step::cargo(&["install", "--locked", "cargo-mutants", "--version", VERSION, "--root", &root])?;
    }
    let mut command = Command::new(program);
    command.args(["mutants", "--package", package, "--output", "target/mutants"]).args(more).current_dir(step::root());
    step::run(command)
}

fn has_version(program: &Path) -> bool {
    let output = Command::new(program).args(["mutants", "--version"]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION))
}
