//! How long this user's runs held each lock, on this machine. No store keeps that.

use std::fmt::Display;
use std::path::{Path, absolute};
use std::time::Duration;

use leasehold::BackendConfig;
use lock_core::LockName;
use rusqlite::{Connection, TransactionBehavior};

use crate::durations::millis;
use crate::store::{Store, create_directory_of, shown, state_path};

/// Beside the default store, which may be in use by other versions.
const FILE: &str = "holds.db";
/// How long to wait for another process that uses the file. Chosen: short, since the record may never be read.
const BUSY: Duration = Duration::from_millis(500);
/// How many holds of one lock are kept. Chosen: the 99th percentile rests on ten of them.
const OF_ONE_MAX: i64 = 1000;
/// How many of the last holds are kept, of all locks. Chosen: 10 MB.
const ALL_MAX: i64 = 100_000;

/// A crash of the machine can only cost suggestions, so nothing is synced.
const SCHEMA: &str = "
    PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS holds
        (id INTEGER PRIMARY KEY AUTOINCREMENT, store TEXT NOT NULL, name TEXT NOT NULL, held_ms INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS holds_of_lock ON holds (store, name, id);";
const ADD: &str = "INSERT INTO holds (store, name, held_ms) VALUES (?1, ?2, ?3)";
const FORGET: &str = "
    DELETE FROM holds WHERE id <= (SELECT max(id) FROM holds) - ?3 OR id <=
        (SELECT id FROM holds WHERE store = ?1 AND name = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?4) AND store = ?1 AND name = ?2";
const LIST: &str = "SELECT held_ms FROM holds WHERE store = ?1 AND name = ?2";

/// Remembers a hold. Without a state directory, it does not.
///
/// # Errors
/// What the file system or SQLite says, with the file.
pub(crate) fn add(store: &Store, name: &LockName, held: Duration) -> Result<(), String> {
    let (Some(path), Some(store)) = (state_path(FILE), place(store)) else { return Ok(()) };
    create_directory_of(&path).map_err(|error| failed(&path, error))?;
    add_to(&path, &store, name.as_str(), held).map_err(|error| failed(&path, error))
}

/// How long the lock was held in the past.
///
/// # Errors
/// What SQLite says, with the file.
pub(crate) fn holds(store: &Store, name: &LockName) -> Result<Vec<Duration>, String> {
    match (state_path(FILE), place(store)) {
        (Some(path), Some(store)) if path.exists() => {
            list(&path, &store, name.as_str()).map_err(|error| failed(&path, error))
        }
        _ => Ok(Vec::new()),
    }
}

/// What the holds of a store are listed under: the store and the prefix of its names. It names no user and no password.
fn place(store: &Store) -> Option<String> {
    let mut config = store.config().ok()?;
    let prefix = match &mut config {
        BackendConfig::Redis(config) => config.prefix().unwrap_or_default().to_owned(),
        BackendConfig::Redlock(config) => config.prefix().unwrap_or_default().to_owned(),
        BackendConfig::Sqlite(config) => {
            config.path = absolute(&config.path).ok()?;
            config.prefix.as_deref().unwrap_or_default().to_owned()
        }
        BackendConfig::Memory(_) | _ => String::new(),
    };
    Some([shown(&config), prefix].join(" "))
}

fn failed(path: &Path, error: impl Display) -> String {
    format!("cannot use {}, the record of past holds: {error}", path.display())
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let file = Connection::open(path)?;
    file.busy_timeout(BUSY)?;
    file.execute_batch(SCHEMA)?;
    Ok(file)
}

fn add_to(path: &Path, store: &str, name: &str, held: Duration) -> rusqlite::Result<()> {
    let mut file = open(path)?;
    let change = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
    change.execute(ADD, (store, name, i64::try_from(millis(held)).unwrap_or(i64::MAX)))?;
    change.execute(FORGET, (store, name, ALL_MAX, OF_ONE_MAX))?;
    change.commit()
}

fn list(path: &Path, store: &str, name: &str) -> rusqlite::Result<Vec<Duration>> {
    // Opened for writing: SQLite has to repair what a killed run has left.
    let file = open(path)?;
    let mut list = file.prepare(LIST)?;
    let holds = list.query_map((store, name), |row| row.get::<_, i64>(0))?;
    holds.map(|held| Ok(Duration::from_millis(u64::try_from(held?).unwrap_or(0)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_holds_of_each_lock_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let add = |name, millis| add_to(&path, "redis://db1", name, Duration::from_millis(millis)).unwrap();
        add("nightly", 7);
        (0..1005).for_each(|millis| add("each minute", millis));
        let holds = list(&path, "redis://db1", "each minute").unwrap();
        assert_eq!((holds.len(), holds.iter().min()), (1000, Some(&Duration::from_millis(5))));
        assert_eq!(list(&path, "redis://db1", "nightly").unwrap(), [Duration::from_millis(7)]);
        assert_eq!(list(&path, "redis://db2", "nightly").unwrap(), []);
    }

    #[test]
    fn each_prefix_has_holds_of_its_own_and_a_file_is_found_by_its_whole_path() {
        let place = |url: &str| place(&Store::Url(url.to_owned())).unwrap();
        assert_eq!(place("redis://u:secret@db1?prefix=app1"), "redis://***@db1 app1");
        assert_ne!(place("redis://db1?prefix=app1"), place("redis://db1?prefix=app2"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(place("sqlite:locks.db"), place(&format!("sqlite:{}/locks.db", here.display())));
    }

    #[test]
    fn what_a_killed_run_leaves_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        std::fs::write(&path, "").unwrap();
        assert_eq!(list(&path, "redis://db1", "nightly").unwrap(), []);
    }
}
