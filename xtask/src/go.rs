//! The tests of lock-etcd beside etcd's own client for Go. They need Go, which downloads that client.

use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

/// What to compile.
const PROGRAM: &str = "tests/go";
/// Where tests and benches look for it, below the target.
const PLACE: &str = "servers/go-client/peer";
/// What the names of these tests begin with.
pub(crate) const TESTS: &str = "beside_go::";

/// Compiles the program, and runs them.
pub(crate) fn run() -> Result<()> {
    compile(PROGRAM, PLACE)
        .context("the program with Go's client could not be downloaded and compiled; nothing was tested")?;
    step::cargo(&["test", "--package", "lock-etcd", "--test", "etcd", "--", "--ignored", TESTS])
}

/// Compiles a program in Go to this place below the target.
pub(crate) fn compile(program: &str, place: &str) -> Result<()> {
    let place = std::path::absolute(step::target().join(place))?;
    // Git may refuse to say which commit this is, and nobody asks the program.
    go(program, &["build", "-buildvcs=false", "-o", &place.to_string_lossy(), "."])
}

/// Runs Go in the folder of a program.
pub(crate) fn go(program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("go");
    command.args(arguments).current_dir(step::root().join(program));
    step::run(command)
}
