//! Curator's own tests of its locks, which Maven downloads: they have to pass while our clients want the same locks. Everything is below
//! `target/curator`, so nothing of the system changes but the packages of Maven and Java.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{services, step};

/// What to download and to compile.
const PROJECT: &str = "tests/curator/pom.xml";
/// The test that runs them and competes.
pub(crate) const TEST: &str = "rivals::curators_own_tests_pass_while_ours_want_the_same_locks";
/// How long Maven waits for a server, in milliseconds.
const PATIENCE: u32 = 60_000;

/// Runs them.
pub(crate) fn run() -> Result<()> {
    services::for_curator()?;
    let place = std::path::absolute(step::target().join("curator"))?;
    let place = place.to_str().context("the path of the build is no text")?;
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "--file", PROJECT, "compile"]).current_dir(step::root());
    maven.args([format!("-Dplace={place}"), format!("-Dmaven.repo.local={place}/repository")]);
    for bound in ["connectionTimeout", "readTimeout"] {
        maven.arg(format!("-Dmaven.wagon.http.{bound}={PATIENCE}"));
    }
    step::run(maven).context("Curator's tests could not be downloaded and compiled; nothing was tested")?;
    let package = ["test", "--package", "lock-zookeeper", "--all-features", "--test", "zookeeper"];
    let test = ["--", "--ignored", "--exact", "--nocapture", TEST];
    step::cargo_with(("LEASEHOLD_TEST_CURATOR", place), &[&package[..], &test].concat())
}
