//! `cargo xtask deny`: what `deny.toml` says about all dependencies.

use std::process::Command;

use anyhow::Result;

use crate::tool::Tool;
use crate::{fetch, step};

/// Built without optimization: it takes a minute, and each run takes seconds. Advisories need a database from the network, so the
/// workflow checks them.
const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    options: &["--debug", "--no-default-features", "--config", "profile.dev.debug=false"],
};

/// What needs no network.
const OFFLINE: [&str; 5] = ["--offline", "check", "bans", "licenses", "sources"];

/// Runs these checks, or all that need no network.
pub(crate) fn run(checks: &[String]) -> Result<()> {
    let mut command = Command::new(CARGO_DENY.program()?);
    if checks.is_empty() {
        // It looks at the crates of every platform, and a build has fetched those of this one.
        fetch::run()?;
        command.args(OFFLINE);
    } else {
        command.arg("check").args(checks);
    }
    command.current_dir(step::root());
    step::run(command)
}
