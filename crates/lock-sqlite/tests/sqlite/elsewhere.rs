//! A separate process that opens a file and reports the outcome.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "another process reads it, and a person")]

use std::fmt::Display;
use std::process::{Command, Output};

use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;
use test_support::Finish;

/// The test that plays that process if its environment says so.
pub(crate) const OPENER: &str = "elsewhere::tries_to_open";
/// Names the file in its environment.
pub(crate) const PATH: &str = "LOCK_SQLITE_TEST_PATH";
const OUTCOME: &str = "outcome: ";

/// What the process reported.
#[track_caller]
pub(crate) fn outcome(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let outcome = text.lines().find_map(|line| line.split_once(OUTCOME));
    outcome.unwrap_or_else(|| panic!("{output:?}")).1.to_owned()
}

/// Reports to the test that started this process.
pub(crate) fn tell(outcome: impl Display) {
    println!("{OUTCOME}{outcome}");
}

/// Played by another test as a process of its own; does nothing otherwise.
#[test]
fn tries_to_open() {
    let Ok(path) = std::env::var(PATH) else { return };
    match Sqlite::open(&SqliteConfig::new(path)) {
        Ok(_) => tell("opened"),
        Err(error) => tell(format_args!("{:?}: {error}", error.kind())),
    }
}

/// A command in a namespace of its own: a new user namespace allows that where this user is not root.
pub(crate) fn unshared(options: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", "unshare"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(options);
    command
}

/// Whether this user may do what the command does; prints a note if not.
pub(crate) fn is_permitted(mut probe: Command) -> bool {
    let output = probe.finish();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        eprintln!("not tried, since it is not permitted here: {why}");
    }
    output.status.success()
}
