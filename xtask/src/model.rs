//! `cargo xtask model`: the quorum's protocol at larger bounds than the tests try.

use anyhow::Result;

use crate::step;

/// Explores; the arguments go on to the model.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut line = vec!["run", "--release", "--package", "quorum-model", "--"];
    line.extend(arguments.iter().map(String::as_str));
    step::cargo(&line)
}
