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
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(std::path::absolute(step::target().join(PLACE))?).arg(".");
    build.current_dir(step::root().join(PROGRAM));
    step::run(build)
        .context("the program with Go's client could not be downloaded and compiled; nothing was tested")?;
    step::cargo(&["test", "--package", "lock-etcd", "--test", "etcd", "--", "--ignored", TESTS])
}
