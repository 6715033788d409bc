//! Translates SQLite's failures.

use std::io;
use std::path::Path;
use std::sync::Arc;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use rusqlite::ErrorCode;
use rustix::io::Errno;

/// The name of this backend in errors and capabilities.
pub(crate) const BACKEND: &str = "sqlite";

const LET_IT_WRITE: &str = "let this user write the file and its directory, where SQLite keeps two more files";

const RAISE_THE_LIMIT: &str = "raise the limit on open files (ulimit -n), or close some";

/// Why the work of a transaction was not done.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Our own rules refuse it. Nothing was changed.
    Refused(BackendError),
    /// SQLite failed.
    Sql(Arc<rusqlite::Error>),
}

impl From<BackendError> for Fault {
    fn from(error: BackendError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

/// How far a transaction had got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was committed.
    Before,
    /// The commit itself was in flight.
    Committing,
}

/// An error before anything happened.
pub(crate) fn refusal(operation: Operation, kind: ErrorKind, message: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, operation, kind, Effect::None, message)
}

/// The time ran out before it began, because others write or the line is long.
pub(crate) fn too_busy(operation: Operation, path: &Path) -> BackendError {
    let message = format!("other processes kept {} locked for too long", path.display());
    refusal(operation, ErrorKind::Unavailable, message)
        .with_remedy(
            "try again; if it persists, look for a process that has the file open and is suspended (state T in ps), and continue or \
             end it: one stopped in a commit stops all names",
        )
}

/// There is no answer, because the serving thread panicked.
pub(crate) fn thread_ended(operation: Operation) -> BackendError {
    let message = "the thread that serves the file ended";
    BackendError::new(BACKEND, operation, ErrorKind::Unavailable, Effect::Unknown, message).with_remedy("try again")
}

/// Translates a failure of SQLite.
pub(crate) fn explain(operation: Operation, stage: Stage, path: &Path, error: Arc<rusqlite::Error>) -> BackendError {
    let file = path.display();
    let (kind, message, remedy) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return too_busy(operation, path),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            (ErrorKind::Denied, format!("{file} cannot be opened for writing"), LET_IT_WRITE)
        }
        Some(ErrorCode::DiskFull) => {
            (ErrorKind::Unavailable, format!("the disk of {file} is full"), "make room on that disk")
        }
        Some(ErrorCode::NotADatabase) => {
            let remedy = "choose another path; the file was left untouched";
            (ErrorKind::OtherKind, format!("{file} is not a SQLite database"), remedy)
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            let remedy = "end every process that uses it and move it away; a new file is then created";
            (ErrorKind::Protocol, format!("{file} is damaged"), remedy)
        }
        Some(ErrorCode::SystemIoFailure) if is_cut_short(&error) => {
            let message = format!("{file} or a file beside it was removed or shortened while it was in use");
            (
                ErrorKind::Unavailable,
                message,
                "restart the programs that use it, and find out what removes files named -wal",
            )
        }
        Some(ErrorCode::SystemIoFailure) => {
            (ErrorKind::Unavailable, format!("the disk of {file} failed"), "check the system log")
        }
        Some(ErrorCode::OutOfMemory) => {
            (ErrorKind::Unavailable, "there is not enough memory".to_owned(), "free some memory")
        }
        Some(_) | None => {
            let remedy = "check that only this library writes the file";
            (ErrorKind::Protocol, format!("{file} answered with an error"), remedy)
        }
    };
    BackendError::new(BACKEND, operation, kind, effect(stage, kind, &error), message)
        .with_remedy(remedy)
        .with_source(error)
}

/// Whether a file was shorter than what its index says. A disk that fails is another error.
fn is_cut_short(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}

/// A full disk stops a commit before its last page is written. After any other failure of a commit, the outcome is
/// unknown.
fn effect(stage: Stage, kind: ErrorKind, error: &rusqlite::Error) -> Effect {
    let full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
    match stage {
        Stage::Committing if !full && kind != ErrorKind::Denied => Effect::Unknown,
        Stage::Committing | Stage::Before => Effect::None,
    }
}

/// What Linux does not tell in `/proc`: without it, the leases of others might look expired.
pub(crate) fn unknown(what: &str, source: &str, error: io::Error) -> BackendError {
    let (kind, remedy) = match is_out_of_files(&error) {
        true => (ErrorKind::Unavailable, RAISE_THE_LIMIT),
        false => (ErrorKind::Config, "mount /proc, with all that is in it"),
    };
    refusal(Operation::Connect, kind, format!("cannot tell {what}: {source}: {error}"))
        .with_remedy(remedy)
        .with_source(error)
}

/// Whether this process, or the machine, has too many files open.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Translates a failure of the file system, met while opening.
pub(crate) fn explain_io(operation: Operation, path: &Path, error: io::Error) -> BackendError {
    use io::ErrorKind as Io;
    let met = |kinds: &[Io]| kinds.contains(&error.kind());
    let (kind, remedy) = if met(&[Io::PermissionDenied, Io::ReadOnlyFilesystem]) {
        (ErrorKind::Denied, LET_IT_WRITE)
    } else if is_out_of_files(&error) {
        (ErrorKind::Unavailable, RAISE_THE_LIMIT)
    } else if met(&[Io::StorageFull, Io::QuotaExceeded]) {
        (ErrorKind::Unavailable, "make room on that disk")
    } else if met(&[Io::NotFound, Io::NotADirectory, Io::IsADirectory, Io::AlreadyExists, Io::InvalidFilename]) {
        (ErrorKind::Config, "choose a path in a directory that exists")
    } else if met(&[Io::TooManyLinks]) {
        (ErrorKind::Config, "remove its other names (find them with find -samefile), and share the directory instead")
    } else {
        (ErrorKind::Unavailable, "check the limits of this process and the system log")
    };
    refusal(operation, kind, format!("{} cannot be opened: {error}", path.display()))
        .with_remedy(remedy)
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn explained(code: i32, stage: Stage) -> (ErrorKind, Effect) {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let error = explain(Operation::Acquire, stage, Path::new("/x/locks.db"), Arc::new(error));
        assert!(error.remedy().is_some(), "{error}");
        (error.kind(), error.effect())
    }

    #[test]
    fn a_log_that_was_removed_is_no_broken_disk() {
        let said = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            explain(Operation::Acquire, Stage::Before, Path::new("/x/locks.db"), Arc::new(error)).to_string()
        };
        assert!(said(ffi::SQLITE_IOERR_SHORT_READ).contains("was removed"));
        assert!(said(ffi::SQLITE_IOERR_WRITE).contains("the disk"));
    }

    #[test]
    fn only_a_failed_commit_leaves_a_doubt() {
        for (code, kind, at_commit) in [
            (ffi::SQLITE_BUSY, ErrorKind::Unavailable, Effect::None),
            (ffi::SQLITE_FULL, ErrorKind::Unavailable, Effect::None),
            (ffi::SQLITE_READONLY, ErrorKind::Denied, Effect::None),
            (ffi::SQLITE_CANTOPEN, ErrorKind::Denied, Effect::None),
            (ffi::SQLITE_IOERR, ErrorKind::Unavailable, Effect::Unknown),
            (ffi::SQLITE_IOERR_SHORT_READ, ErrorKind::Unavailable, Effect::Unknown),
            (ffi::SQLITE_NOTADB, ErrorKind::OtherKind, Effect::Unknown),
            (ffi::SQLITE_CORRUPT, ErrorKind::Protocol, Effect::Unknown),
            (ffi::SQLITE_MISUSE, ErrorKind::Protocol, Effect::Unknown),
        ] {
            assert_eq!(explained(code, Stage::Before), (kind, Effect::None), "{code}");
            assert_eq!(explained(code, Stage::Committing), (kind, at_commit), "{code}");
        }
    }
}
