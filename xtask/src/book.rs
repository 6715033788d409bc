//! `cargo xtask book`: the book of `docs/book`, in `target/book`.

use anyhow::Result;

use crate::{step, tidy};

/// The builder has a lockfile of its own, so that nothing it needs is in that of the library.
const MANIFEST: &str = "xtask/book/Cargo.toml";

/// Checks the links of all pages, and builds the book. What builds it takes about 70 seconds of processor time to
/// build, once; installing mdbook itself takes about 260.
pub(crate) fn run() -> Result<()> {
    tidy::links()?;
    step::cargo(&[
        "run",
        "--locked",
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        "target/book-tool",
        "--",
        "docs/book",
    ])
}
