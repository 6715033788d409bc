//! `cargo xtask bench`: how fast this library is compared with its raw client.

use anyhow::Result;

use crate::{services, step};

/// Builds the bench, and the process that measures rslock, and runs the bench with these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    services::for_tests()?;
    let peers = step::target().join("peers");
    let peers_text = peers.to_string_lossy();
    let manifest = "tests/peers/Cargo.toml";
    step::cargo(&["build", "--release", "--bins", "--manifest-path", manifest, "--target-dir", &peers_text])?;
    let rslock = peers.join("release/bench-rslock");
    let rslock = rslock.to_string_lossy();
    let mut line = vec!["run", "--release", "--package", "leasehold-bench", "--", "--rslock", &rslock];
    line.extend(arguments.iter().map(String::as_str));
    step::cargo(&line)
}
