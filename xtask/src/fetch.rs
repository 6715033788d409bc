//! The crates that everything is built from.

use anyhow::{Result, bail};

use crate::step;

/// Downloads them, before anything is tested. Without them, nothing says anything about the project.
pub(crate) fn run() -> Result<()> {
    let output = step::command(&["fetch", "--locked"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(());
    }
    bail!("{}; nothing was tested: {}", reason(&said), said.trim());
}

/// Why there are no crates, from what cargo says.
fn reason(said: &str) -> &'static str {
    if said.contains("--locked") { "Cargo.lock is not up to date" } else { "the crate registry could not be reached" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_that_is_away_is_not_a_lock_file_that_is_outdated() {
        let away = "error: failed to download from `https://index.example/config.json`\n\nCaused by:\n  Could not connect to server";
        assert_eq!(reason(away), "the crate registry could not be reached");
        let outdated = "error: cannot update the lock file Cargo.lock because --locked was passed to prevent this";
        assert_eq!(reason(outdated), "Cargo.lock is not up to date");
    }
}
