//! `cargo xtask book`: the book of `docs/book`, in `target/book`.

use std::process::Command;

use anyhow::Result;

use crate::tool::Tool;
use crate::{step, tidy};

/// Built without optimization, server and search: that takes 70 seconds of processor time, and all of it takes 260.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    options: &["--debug", "--no-default-features", "--config", "profile.dev.debug=false"],
};

/// Checks the links of all pages, and builds the book.
pub(crate) fn run() -> Result<()> {
    tidy::links()?;
    let mut command = Command::new(MDBOOK.program()?);
    command.args(["build", "docs/book"]).current_dir(step::root());
    step::run(command)
}
