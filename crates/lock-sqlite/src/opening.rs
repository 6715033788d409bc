//! The lock under which a file is created, opened and replaced: a file of its own beside the database, which only those may open who may
//! write to the database. A user who may only read the directory could lock that, and nobody would get in.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lock_core::{BackendError, Moment, Operation};
use lock_host::{Clock, HostClock};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::error::{explain_io, too_busy};

/// How often to try for the lock. Its holder opens a file, which takes about a millisecond.
const RETRY: Duration = Duration::from_millis(2);

/// How long to wait for a program of an earlier version, which locks the directory instead.
///
/// Chosen: far longer than such a program needs, and short enough for those whom somebody else who locks the directory delays.
const OLDER_WITHIN: Duration = Duration::from_millis(200);

/// A file that is beside the database.
pub(crate) fn beside(main: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(main);
    path.push(ending);
    path.into()
}

/// Held while a file is created, opened or replaced, so that only one process does so at a time. Ends when it is dropped.
pub(crate) struct OpeningLock {
    path: PathBuf,
    own: Option<Own>,
    /// What earlier versions lock, if it could be locked.
    _directory: Option<File>,
}

struct Own {
    file: File,
    is_new: bool,
}

impl OpeningLock {
    /// Waits for the lock of the database `main` until `deadline`. `given` is what errors call it.
    pub(crate) fn take(main: &Path, given: &Path, deadline: Moment) -> Result<Self, BackendError> {
        let path = beside(main, "-lock");
        let directory = main.parent().unwrap_or(Path::new("/"));
        let own = Own::take(&path, deadline).map_err(|error| explain_io(Operation::Connect, &path, error))?;
        let _directory = match &own {
            Taken::Late => return Err(too_busy(Operation::Connect, given)),
            Taken::Here(own) => {
                admit_writers(&own.file, main);
                older(directory, HostClock.now() + OLDER_WITHIN)
            }
            // Its owner has not opened the database since others were admitted there. It locks the directory as well.
            Taken::NotAdmitted => {
                File::open(directory).map_err(|error| explain_io(Operation::Connect, given, error))?;
                Some(older(directory, deadline).ok_or_else(|| too_busy(Operation::Connect, given))?)
            }
        };
        let own = if let Taken::Here(own) = own { Some(own) } else { None };
        Ok(Self { path, own, _directory })
    }

    /// Leaves nothing behind where nothing was opened.
    pub(crate) fn leave_no_trace(self) {
        if self.own.as_ref().is_some_and(|own| own.is_new) {
            // What cannot be removed is an empty file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

enum Taken {
    Here(Own),
    Late,
    NotAdmitted,
}

impl Own {
    fn take(path: &Path, deadline: Moment) -> io::Result<Taken> {
        loop {
            let (file, is_new) = match open(path) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Taken::NotAdmitted),
                opened => opened?,
            };
            if !wait(&file, deadline)? {
                return Ok(Taken::Late);
            }
            // It may have been removed since, and another one be locked by others.
            if is_at(&file, path)? {
                return Ok(Taken::Here(Self { file, is_new }));
            }
        }
    }
}

fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    options.read(true).write(true).mode(0o600).custom_flags(no_link);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        // It may be removed in between.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok((options.create(true).truncate(false).open(path)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Whether it was locked in time.
fn wait(file: &File, deadline: Moment) -> io::Result<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if HostClock.now() < deadline => thread::sleep(RETRY),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lets those open the lock who may write to the database, as SQLite does it for its two files; nobody who may only read.
fn admit_writers(file: &File, main: &Path) {
    let (Ok(database), Ok(lock)) = (fs::metadata(main), file.metadata()) else { return };
    let writers = database.mode() & 0o222;
    let mode = writers | writers << 1;
    // Only its owner can. For the others it is as its owner left it.
    if lock.gid() != database.gid() || lock.uid() != database.uid() {
        let owner = rustix::process::geteuid().is_root().then(|| database.uid());
        let _ = fchown(file, owner, Some(database.gid()));
    }
    if lock.mode() & 0o777 != mode {
        let _ = file.set_permissions(fs::Permissions::from_mode(mode));
    }
}

fn older(directory: &Path, deadline: Moment) -> Option<File> {
    let directory = File::open(directory).ok()?;
    wait(&directory, deadline).ok()?.then_some(directory)
}

#[cfg(test)]
mod tests {
    use lock_core::ErrorKind;

    use super::*;

    fn take(main: &Path, within: u64) -> Result<OpeningLock, BackendError> {
        OpeningLock::take(main, main, HostClock.now() + Duration::from_millis(within))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn one_at_a_time_opens_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let main = directory.path().join("locks.db");
        let lock = take(&main, 50).unwrap();
        assert_eq!(take(&main, 50).err().unwrap().kind(), ErrorKind::Unavailable);
        drop(lock);
        take(&main, 50).unwrap();
    }

    #[test]
    fn a_lock_that_was_removed_is_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (main, path) = (directory.path().join("locks.db"), directory.path().join("locks.db-lock"));
        let first = take(&main, 50).unwrap();
        let waiting = thread::spawn({
            let main = main.clone();
            move || take(&main, 20_000).map(|lock| lock.own.unwrap().file.metadata().unwrap().ino())
        });
        thread::sleep(Duration::from_millis(50));
        first.leave_no_trace();
        assert_eq!(waiting.join().unwrap().unwrap(), fs::metadata(&path).unwrap().ino());
    }

    #[test]
    fn only_those_who_may_write_to_the_database_may_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (main, path) = (directory.path().join("locks.db"), directory.path().join("locks.db-lock"));
        drop(take(&main, 50).unwrap());
        assert_eq!(mode(&path), 0o600);
        fs::write(&main, "").unwrap();
        for (database, lock) in [(0o644, 0o600), (0o664, 0o660), (0o660, 0o660), (0o666, 0o666), (0o600, 0o600)] {
            fs::set_permissions(&main, fs::Permissions::from_mode(database)).unwrap();
            drop(take(&main, 50).unwrap());
            assert_eq!(mode(&path), lock, "{database:o}");
        }
    }

    #[test]
    fn programs_of_an_earlier_version_wait_and_are_waited_for_but_not_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let main = directory.path().join("locks.db");
        let lock = take(&main, 50).unwrap();
        let earlier = File::open(directory.path()).unwrap();
        assert_eq!(flock(&earlier, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
        drop(lock);
        flock(&earlier, FlockOperation::NonBlockingLockExclusive).unwrap();
        let before = HostClock.now();
        take(&main, 50).unwrap();
        assert!(HostClock.now().since(before) >= OLDER_WITHIN);
    }
}
