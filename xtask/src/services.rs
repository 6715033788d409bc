//! The servers that tests need.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::step;

/// Makes sure that a Redis server can be started: found, or installed where that is allowed.
pub(crate) fn redis() -> Result<()> {
    if is_there("redis-server") {
        return Ok(());
    }
    let as_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if !as_root || !is_there("apt-get") {
        bail!("the tests need redis-server; install it with: sudo apt-get install --yes redis-server");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        step::run(command)
    };
    apt(&["update"])?;
    // The tests start servers of their own; the service that the package would start is not wanted.
    apt(&["install", "--yes", "--no-install-recommends", "redis-server"])
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}
