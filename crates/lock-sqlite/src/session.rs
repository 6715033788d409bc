//! One open connection to the file, and its transactions.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::{BackendError, ErrorKind, Moment, Operation};
use lock_host::{Clock, HostClock};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::boots;
use crate::error::{Fault, Stage, explain, explain_io, refusal, too_busy};
use crate::file::{Identity, Location, Missing};
use crate::opening::OpeningLock;
use crate::schema;
use crate::settings::Settings;
use crate::together::{Joined, is_apart};

/// How often to try for the write lock. A commit takes about a millisecond, so longer sleeps would waste the lock.
pub(crate) const BUSY_RETRY: Duration = Duration::from_micros(500);

/// The longest time that SQLite itself can wait while a file is opened; it counts in 31 bits.
const BUSY_MAX: Duration = Duration::from_secs(60);

/// What a request is, as errors call it, and until when it may wait for others (not for the disk).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) operation: Operation,
    pub(crate) access: Access,
    pub(crate) deadline: Moment,
}

/// Which transaction a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads the last commit, and waits for nobody.
    Read,
    /// Writes, alone.
    Write,
}

/// Whether a transaction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It runs on the file that has the path.
    Here,
    /// It does not run: another file has the path now, or none has.
    Replaced,
}

/// Why a transaction was not committed.
#[derive(Debug)]
pub(crate) struct Failure {
    stage: Stage,
    fault: Fault,
}

impl Failure {
    /// What it means for a request of that transaction.
    pub(crate) fn explain(&self, operation: Operation, path: &Path) -> BackendError {
        match &self.fault {
            Fault::Refused(error) => error.clone(),
            Fault::Sql(error) => explain(operation, self.stage, path, Arc::clone(error)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    db: Connection,
    location: Location,
    identity: Identity,
    /// Dropped after the connection.
    _joined: Joined,
}

impl Session {
    /// Opens the file that has the path now. If there is an `earlier` session, its file was replaced.
    ///
    /// # Errors
    /// A file that is not ours, cannot be written or must not be used. It is left untouched.
    pub(crate) fn open(
        settings: &Settings,
        earlier: &mut Option<Self>,
        missing: Missing,
        deadline: Moment,
    ) -> Result<Self, BackendError> {
        let location = Location::find(&settings.path)?;
        let lock = location.lock(deadline)?;
        let opened = Self::open_alone(settings, location, &lock, earlier, missing, deadline);
        if opened.is_err() {
            lock.leave_no_trace();
        }
        opened
    }

    fn open_alone(
        settings: &Settings,
        location: Location,
        lock: &OpeningLock,
        earlier: &mut Option<Self>,
        missing: Missing,
        deadline: Moment,
    ) -> Result<Self, BackendError> {
        if let Some(earlier) = earlier {
            location.disown(lock, &earlier.identity)?;
        }
        // Closed (see `Drop`) before the new one is opened: closing a file drops this process's locks on all it shares an inode with.
        drop(earlier.take());
        location.ensure(lock, missing)?;
        let expected = location.identity().map_err(|error| explain_io(Operation::Connect, &settings.path, error))?;
        if is_apart(&expected) {
            return Err(apart(settings));
        }
        let db = connect(settings, &location, deadline)?;
        let identity = location.identity().map_err(|error| explain_io(Operation::Connect, &settings.path, error))?;
        if !identity.is_same_file(&expected) {
            return Err(replaced_again(Operation::Connect, settings));
        }
        Ok(Self { db, location, identity, _joined: Joined::new(identity) })
    }

    /// Whether the path still leads to the files that this session has open.
    pub(crate) fn is_current(&self) -> bool {
        self.location.identity().is_ok_and(|present| present == self.identity)
    }

    /// A number that changes with every commit by others.
    pub(crate) fn data_version(&self) -> rusqlite::Result<i64> {
        self.db.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))
    }

    /// Begins a transaction, and then checks that it runs on the right file, because waiting for it may have taken
    /// long. Does something else `meanwhile`.
    pub(crate) fn begin(&self, settings: &Settings, ask: &Ask, meanwhile: impl Fn()) -> Result<Begun, BackendError> {
        loop {
            match self.try_begin(ask.access) {
                Ok(()) if self.is_current() => return Ok(Begun::Here),
                Ok(()) => {
                    self.roll_back();
                    return Ok(Begun::Replaced);
                }
                Err(error) => {
                    self.roll_back();
                    if !is_busy(&error) {
                        return Err(explain(ask.operation, Stage::Before, &settings.path, error.into()));
                    }
                }
            }
            if HostClock.now() >= ask.deadline {
                return Err(too_busy(ask.operation, &settings.path));
            }
            meanwhile();
            thread::sleep(BUSY_RETRY);
        }
    }

    fn try_begin(&self, access: Access) -> rusqlite::Result<()> {
        match access {
            // A snapshot is taken by the first read only.
            Access::Read => self.db.execute_batch("BEGIN; SELECT last FROM counter"),
            Access::Write => self.db.prepare_cached("BEGIN IMMEDIATE")?.execute(()).map(drop),
        }
    }

    /// Does the work of a transaction that has begun, and commits it. The session comes back unless SQLite failed.
    pub(crate) fn finish<T>(
        self,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> (Option<Self>, Result<T, Failure>) {
        let (stage, fault) = match work(&self.db) {
            Ok(done) => match self.commit() {
                Ok(()) => return (Some(self), Ok(done)),
                Err(error) => (Stage::Committing, error.into()),
            },
            Err(fault) => (Stage::Before, fault),
        };
        let session = match &fault {
            Fault::Refused(_) => {
                self.roll_back();
                Some(self)
            }
            Fault::Sql(_) => None,
        };
        (session, Err(Failure { stage, fault }))
    }

    fn commit(&self) -> rusqlite::Result<()> {
        self.db.prepare_cached("COMMIT")?.execute(()).map(drop)
    }

    fn roll_back(&self) {
        if !self.db.is_autocommit() {
            // It fails only where SQLite has rolled back by itself.
            let _ = self.db.execute_batch("ROLLBACK");
        }
    }

    #[cfg(test)]
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.db
    }
}

impl Drop for Session {
    /// Files that were replaced are left as they are: SQLite would write what it knows of the earlier ones into the database, and remove
    /// the log of others.
    fn drop(&mut self) {
        if !self.is_current() {
            let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

fn connect(settings: &Settings, location: &Location, deadline: Moment) -> Result<Connection, BackendError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = || -> Result<Connection, Fault> {
        let db = Connection::open_with_flags(&location.main, flags)?;
        if db.is_readonly("main")? {
            let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
            return Err(rusqlite::Error::SqliteFailure(error, None).into());
        }
        db.busy_timeout(deadline.since(HostClock.now()).min(BUSY_MAX))?;
        // A file that belongs to another application keeps even its unwritten pages.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        schema::adopt(&db, &settings.path)?;
        boots::end_past_ones(&db, settings, &location.main)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        db.busy_timeout(Duration::ZERO)?;
        // This program does itself what triggers do for those that do not know the tables: see `permits`.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        db.set_prepared_statement_cache_capacity(64);
        // One plan for all values. Otherwise each new moment makes SQLite prepare some statements again.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(db)
    };
    opened().map_err(|fault| match (&fault, location.missing_handles()) {
        (Fault::Sql(error), Some(missing)) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            explain_io(Operation::Connect, &settings.path, missing)
        }
        _ => Failure { stage: Stage::Before, fault }.explain(Operation::Connect, &settings.path),
    })
}

/// Other connections of this process must be closed first. The idle ones were; each of the others is at its next request.
fn apart(settings: &Settings) -> BackendError {
    let message = format!("what is beside {} was removed while this process used it", settings.path.display());
    let remedy = "try again; if it persists, restart this program, and find out what removes files named -shm";
    refusal(Operation::Connect, ErrorKind::Unavailable, message).with_remedy(remedy)
}

pub(crate) fn replaced_again(operation: Operation, settings: &Settings) -> BackendError {
    let message = format!("{} was replaced several times during one request", settings.path.display());
    refusal(operation, ErrorKind::Unavailable, message).with_remedy("find out what replaces the file, and stop it")
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_busy_database_is_waited_for() {
        let failed = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        assert!(is_busy(&failed(rusqlite::ffi::SQLITE_BUSY)) && is_busy(&failed(rusqlite::ffi::SQLITE_LOCKED)));
        assert!(!is_busy(&failed(rusqlite::ffi::SQLITE_CORRUPT)));
    }
}
