//! Runs commands one after another, and prints each.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Runs cargo in the root with these arguments.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    run(command(arguments))
}

/// Runs cargo in the root with these arguments and one more variable in its environment.
pub(crate) fn cargo_with(variable: (&str, &str), arguments: &[&str]) -> Result<()> {
    let mut command = command(arguments);
    command.env(variable.0, variable.1);
    run(command)
}

/// What cargo prints for these arguments.
pub(crate) fn output(arguments: &[&str]) -> Result<String> {
    let output = command(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo {} failed: {said}", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// Where cargo builds when it runs in the root.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Cargo in the root with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command and fails if it does.
pub(crate) fn run(mut command: Command) -> Result<()> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let line = format!("{program} {}", arguments.join(" "));
    eprintln!("==> {line}");
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line} failed ({status})");
    }
    eprintln!("==> done in {} s: {line}", start.elapsed().as_secs());
    Ok(())
}
