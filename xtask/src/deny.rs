//! `cargo xtask deny`: licences, sources and duplicates of all dependencies, as `deny.toml` allows them.

use std::process::Command;

use anyhow::Result;

use crate::step;
use crate::tool::Tool;

/// Built without optimization: it takes a minute, and each run takes seconds. Advisories need a database from the network, so the
/// workflow checks them.
const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    options: &["--debug", "--no-default-features", "--config", "profile.dev.debug=false"],
};

/// Checks, without the network.
pub(crate) fn run() -> Result<()> {
    let mut command = Command::new(CARGO_DENY.program()?);
    command.args(["--offline", "check", "bans", "licenses", "sources"]).current_dir(step::root());
    step::run(command)
}
