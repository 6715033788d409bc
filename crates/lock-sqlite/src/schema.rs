//! The tables, and how to recognize a file as ours.

use std::path::Path;

use lock_core::{ErrorKind, Operation};
use rusqlite::Connection;

use crate::additions::ADDED;
use crate::error::{Fault, refusal};
use crate::timing::wall_micros;

/// What marks a file as ours: "lhlk".
const APPLICATION_ID: i32 = 0x6c68_6c6b;

/// The layout that this version writes. A newer one is refused, never guessed at.
///
/// Programs of one version may use a file together, also those that do not know the [`ADDED`] ones.
const VERSION: i32 = 1;

/// A place is found by name and number, so that a queue is one contiguous range of one tree.
const TABLES: &str = "
CREATE TABLE locks(
    name TEXT PRIMARY KEY, owner TEXT NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
    note TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE queue(
    name TEXT NOT NULL, place INTEGER NOT NULL, owner TEXT NOT NULL, ttl_ms INTEGER NOT NULL, width INTEGER NOT NULL,
    note TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL, PRIMARY KEY(name, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE tombstones(
    name TEXT NOT NULL, owner TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL, PRIMARY KEY(name, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE counter(one INTEGER PRIMARY KEY CHECK(one = 1), last INTEGER NOT NULL) STRICT;
";

/// What kind of file was found.
#[derive(Debug, PartialEq, Eq)]
enum Contents {
    Ours,
    /// Ours, from before some of the additions.
    Older,
    Empty,
    Newer(i32),
    Foreign,
}

/// Checks that the file is ours, or makes it ours if it is empty, and sets up the connection. Any other file is left
/// untouched.
///
/// Only one process at a time may do this with a file.
pub(crate) fn adopt(db: &Connection, path: &Path) -> Result<(), Fault> {
    match examine(db)? {
        Contents::Ours => set_up(db, path),
        Contents::Older => {
            set_up(db, path)?;
            Ok(extend(db)?)
        }
        Contents::Empty => {
            set_up(db, path)?;
            Ok(initialise(db)?)
        }
        Contents::Newer(version) => {
            let message =
                format!("{} has layout {version}, but this program supports layouts up to {VERSION}", path.display());
            let remedy = "update this program, or choose another path";
            Err(refusal(Operation::Connect, ErrorKind::Config, message).with_remedy(remedy).into())
        }
        Contents::Foreign => {
            let message = format!("{} is a database of another application", path.display());
            let remedy = "choose another path; the file was left untouched";
            Err(refusal(Operation::Connect, ErrorKind::OtherKind, message).with_remedy(remedy).into())
        }
    }
}

fn examine(db: &Connection) -> rusqlite::Result<Contents> {
    let number = |sql: &str| db.query_row(sql, (), |row| row.get::<_, i32>(0));
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    Ok(match (number("PRAGMA application_id")?, number("PRAGMA user_version")?) {
        (APPLICATION_ID, VERSION) if !missing(db)?.is_empty() => Contents::Older,
        (APPLICATION_ID, VERSION) => Contents::Ours,
        (APPLICATION_ID, version) if version > VERSION => Contents::Newer(version),
        (0, 0) if tables == 0 => Contents::Empty,
        _ => Contents::Foreign,
    })
}

/// Every commit reaches the disk before it is answered, on macOS through the disk's own cache, too.
fn set_up(db: &Connection, path: &Path) -> Result<(), Fault> {
    let mode: String = db.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))?;
    if mode != "wal" {
        let message =
            format!("{} is on a file system where SQLite cannot share memory (journal mode {mode})", path.display());
        let remedy = "choose a path on a local disk";
        return Err(refusal(Operation::Connect, ErrorKind::Config, message).with_remedy(remedy).into());
    }
    Ok(db.execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")?)
}

fn initialise(db: &Connection) -> rusqlite::Result<()> {
    let (first, added) = (wall_micros(), ADDED.map(|(_, addition)| addition).concat());
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} {added}
         INSERT INTO counter VALUES (1, {first});
         PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};
         COMMIT"
    ))
}

fn extend(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(&format!("BEGIN IMMEDIATE; {} COMMIT", missing(db)?.concat()))
}

/// The additions that the file does not have.
fn missing(db: &Connection) -> rusqlite::Result<Vec<&'static str>> {
    let mut statement = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?;
    let mut missing = Vec::new();
    for (table, addition) in ADDED {
        if !statement.exists([table])? {
            missing.push(addition);
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adopted(prepare: &str) -> (ErrorKind, String) {
        let directory = tempfile::tempdir().unwrap();
        let db = Connection::open(directory.path().join("locks.db")).unwrap();
        db.execute_batch(prepare).unwrap();
        match adopt(&db, Path::new("locks.db")) {
            Err(Fault::Refused(error)) => (error.kind(), error.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_empty_file_becomes_ours_and_stays_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("locks.db");
        let db = Connection::open(&path).unwrap();
        assert_eq!(examine(&db).unwrap(), Contents::Empty);
        adopt(&db, &path).unwrap();
        assert_eq!(examine(&db).unwrap(), Contents::Ours);
        adopt(&Connection::open(&path).unwrap(), &path).unwrap();
        let synchronous: i32 = db.query_row("PRAGMA synchronous", (), |row| row.get(0)).unwrap();
        assert_eq!(synchronous, 2);
    }

    #[test]
    fn a_file_from_before_the_additions_gets_them_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("locks.db");
        let db = Connection::open(&path).unwrap();
        let mark = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}");
        db.execute_batch(&format!("{TABLES} {mark}")).unwrap();
        let unwritten = "DROP INDEX holds_by_time; CREATE INDEX holds_by_end ON holds(name, boot, expires_ns);
            ALTER TABLE locks DROP COLUMN written_ns; ALTER TABLE holds DROP COLUMN written_ns";
        let uncounted = "DROP TRIGGER permits_replaced; DROP TRIGGER permits_taken; DROP TRIGGER permits_returned;
            DROP VIEW slots_to_take; DROP VIEW slots_to_return; DROP TABLE permits";
        let unordered = "DROP INDEX queue_by_owner; DROP INDEX queue_by_time";
        for older in ["", "DROP TABLE limits", "DROP TABLE revocations", unwritten, unordered, uncounted] {
            db.execute_batch(older).unwrap();
            assert_eq!(examine(&db).unwrap(), Contents::Older);
            for _ in 0..2 {
                adopt(&Connection::open(&path).unwrap(), &path).unwrap();
                assert_eq!(examine(&db).unwrap(), Contents::Ours);
            }
        }
        for table in ["holds", "latches", "arrivals", "limits", "revocations"] {
            let rows = db.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get::<_, i32>(0));
            assert_eq!(rows.unwrap(), 0);
        }
    }

    #[test]
    fn other_databases_are_refused() {
        assert_eq!(adopted("CREATE TABLE t(x)").0, ErrorKind::OtherKind);
        assert_eq!(adopted("PRAGMA application_id = 7").0, ErrorKind::OtherKind);
        assert_eq!(adopted("PRAGMA user_version = 1").0, ErrorKind::OtherKind);
        assert_eq!(adopted(&format!("PRAGMA application_id = {APPLICATION_ID}")).0, ErrorKind::OtherKind);
        let (kind, text) = adopted(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 2"));
        assert_eq!(kind, ErrorKind::Config);
        assert!(text.contains("update this program"), "{text}");
    }
}
