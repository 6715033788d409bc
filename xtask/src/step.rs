//! Runs commands one after another, and prints each.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How often to look whether a command has exited whose output is still open.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
    // Cargo set these for this program. Build scripts that read them would run again, and half of the crates would be compiled again.
    for (variable, _) in env::vars_os().filter(|(variable, _)| is_of_a_package(variable)) {
        command.env_remove(variable);
    }
    command
}

/// Whether a variable describes the package that cargo runs.
fn is_of_a_package(variable: &OsStr) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| variable.to_string_lossy().starts_with(start))
}

/// Runs a command and fails if it does.
pub(crate) fn run(command: Command) -> Result<()> {
    run_by(command, |command| command.status())
}

/// Runs a command, and passes each line that it prints to `read` as well. Returns when the command exits, even if a process that it left behind
/// keeps the output open.
pub(crate) fn run_reading(command: Command, mut read: impl FnMut(&str)) -> Result<()> {
    run_by(command, |command| {
        let (output, printing) = io::pipe()?;
        let mut child = command.stdout(printing.try_clone()?).stderr(printing).spawn()?;
        // The command keeps the writing end, which would keep the pipe open.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (line_read, lines) = mpsc::channel();
        let output = BufReader::new(output).split(b'\n');
        thread::spawn(move || output.map_while(Result::ok).try_for_each(|line| line_read.send(line)));
        let mut print = |line: Vec<u8>| {
            let line = String::from_utf8_lossy(&line);
            read(&line);
            writeln!(io::stdout(), "{line}")
        };
        let mut looked = Instant::now();
        loop {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => print(line)?,
                Err(RecvTimeoutError::Disconnected) => return child.wait(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A process that it left behind may go on printing.
            if looked.elapsed() < LOOK_EVERY {
                continue;
            }
            looked = Instant::now();
            if let Some(status) = child.try_wait()? {
                lines.try_iter().try_for_each(print)?;
                return Ok(status);
            }
        }
    })
}

fn run_by(mut command: Command, run: impl FnOnce(&mut Command) -> io::Result<ExitStatus>) -> Result<()> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let line = format!("{program} {}", arguments.join(" "));
    eprintln!("==> {line}");
    let start = Instant::now();
    let status = run(&mut command).with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line} failed ({status})");
    }
    eprintln!("==> done in {} s: {line}", start.elapsed().as_secs());
    Ok(())
}
