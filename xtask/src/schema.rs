//! `cargo xtask schema`: the JSON schema of configurations, made from their types.

use anyhow::Result;

use crate::step;

/// Writes `docs/book/src/configuration.schema.json`. The test that compares it with the types writes it.
pub(crate) fn run() -> Result<()> {
    let test = ["test", "--package", "leasehold", "--all-features", "--test", "it", "published"];
    step::cargo_with(("LEASEHOLD_BLESS", "1"), &test)
}
