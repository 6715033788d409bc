//! A process of its own that opens a file and says what came of it.

use std::io::Write;
use std::process::Output;

use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;

/// The test that is that process, when this is its environment.
pub(crate) const OPENER: &str = "elsewhere::tries_to_open";
pub(crate) const PATH: &str = "LOCK_SQLITE_TEST_PATH";
const OUTCOME: &str = "outcome: ";

/// "opened", or the kind of the error and its text.
#[track_caller]
pub(crate) fn outcome(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let outcome = text.lines().find_map(|line| line.split_once(OUTCOME));
    outcome.unwrap_or_else(|| panic!("{output:?}")).1.to_owned()
}

/// Played by another test as a process of its own; does nothing otherwise.
#[test]
fn tries_to_open() {
    let Ok(path) = std::env::var(PATH) else { return };
    let outcome = match Sqlite::open(&SqliteConfig::new(path)) {
        Ok(_) => "opened".to_owned(),
        Err(error) => format!("{:?}: {error}", error.kind()),
    };
    writeln!(std::io::stdout(), "{OUTCOME}{outcome}").unwrap();
}
