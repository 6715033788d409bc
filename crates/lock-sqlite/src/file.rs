//! The file itself: where it is, whether it is still the same one, and who may create it.
//!
//! Never opens a file that SQLite may have open in this process, because closing it would drop SQLite's locks on it.
//!
//! # Source
//! "How To Corrupt An SQLite Database File" of the SQLite manual: POSIX locks, files unlinked or renamed in use.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lock_core::{BackendError, ErrorKind, Moment, Operation};

use crate::error::{explain_io, is_out_of_files, refusal};
use crate::inode;
use crate::mounts::refuse_mounted_file;
use crate::network::refuse_network;
use crate::opening::{OpeningLock, beside};

const CONNECT: Operation = Operation::Connect;

/// How many files SQLite opens at most: the three of a database, and their directory.
const SQLITE_FILES: usize = 4;

/// What to do if there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Create one.
    Create,
    /// Leave it so, and fail.
    Refuse,
}

/// The path as it was given, and the three files it leads to.
#[derive(Debug)]
pub(crate) struct Location {
    given: PathBuf,
    directory: PathBuf,
    pub(crate) main: PathBuf,
    wal: PathBuf,
    shm: PathBuf,
}

/// Which files are at the three paths: device and inode of each that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    main: FileId,
    wal: FileId,
    shm: FileId,
}

type FileId = Option<(u64, u64)>;

impl Location {
    /// Follows symbolic links, as SQLite does: its other two files are beside the real one.
    pub(crate) fn find(given: &Path) -> Result<Self, BackendError> {
        if given.is_relative() {
            let message = format!("{} is relative to a working directory that is not known", given.display());
            return Err(refusal(CONNECT, ErrorKind::Config, message).with_remedy("give an absolute path"));
        }
        let main = match fs::canonicalize(given) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing_file(given)?,
            found => found.map_err(|error| explain_io(CONNECT, given, error))?,
        };
        let directory = main.parent().unwrap_or(Path::new("/")).to_owned();
        refuse_network(given, &directory)?;
        refuse_mounted_file(given, &main)?;
        let (wal, shm) = (beside(&main, "-wal"), beside(&main, "-shm"));
        Ok(Self { given: given.to_owned(), directory, main, wal, shm })
    }

    /// Waits for the right to open the file until `deadline`.
    pub(crate) fn lock(&self, deadline: Moment) -> Result<OpeningLock, BackendError> {
        OpeningLock::take(&self.main, &self.given, deadline)
    }

    /// Makes sure that there is a plain file on a local disk. If it is missing, creates it for this user only.
    pub(crate) fn ensure(&self, lock: &OpeningLock, missing: Missing) -> Result<(), BackendError> {
        match (fs::metadata(&self.main), missing) {
            (Ok(metadata), _) if metadata.is_file() => refuse_network(&self.given, &self.main),
            (Ok(_), _) => {
                let message = format!("{} is not a file", self.given.display());
                Err(refusal(CONNECT, ErrorKind::Config, message).with_remedy("give the path of a file"))
            }
            (Err(error), Missing::Create) if error.kind() == io::ErrorKind::NotFound => {
                self.create(lock).map_err(|error| explain_io(CONNECT, &self.given, error))
            }
            (Err(error), _) => Err(explain_io(CONNECT, &self.given, error)),
        }
    }

    fn create(&self, _lock: &OpeningLock) -> io::Result<()> {
        // SQLite would take what a deleted database left behind for files of the new one.
        self.remove_companions()?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.main)?;
        File::open(&self.directory)?.sync_all()
    }

    /// Replaces the `earlier` files, one of which is no longer at its path. They must still be open, so that their
    /// inodes are not reused.
    ///
    /// If the database itself was replaced, what is left of the earlier one beside it is removed, because SQLite would
    /// mix their pages. If only a companion was removed, the database is removed, too: others still work with the
    /// earlier companion, so only a new database brings all clients together again. A database with a newer index is not ours to
    /// delete: others hold locks in it.
    pub(crate) fn disown(&self, _lock: &OpeningLock, earlier: &Identity) -> Result<(), BackendError> {
        let disowned = self.identity().and_then(|present| match present.main == earlier.main {
            true if present == *earlier || present.has_newer_index_than(earlier) => Ok(()),
            true => fs::remove_file(&self.main).and_then(|()| self.remove_companions()),
            false if present.wal == earlier.wal || present.shm == earlier.shm => self.remove_companions(),
            false => Ok(()),
        });
        disowned.map_err(|error| explain_io(CONNECT, &self.given, error))
    }

    /// Why this process cannot open as many files as SQLite does, which says only that it could not open one.
    pub(crate) fn missing_handles(&self) -> Option<io::Error> {
        let opened: io::Result<Vec<File>> = (0..SQLITE_FILES).map(|_| File::open(&self.directory)).collect();
        opened.err().filter(is_out_of_files)
    }

    fn remove_companions(&self) -> io::Result<()> {
        for path in [&self.wal, &self.shm, &beside(&self.main, "-journal")] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Which files are there now. Takes three system calls, a few microseconds.
    ///
    /// # Errors
    /// Those of the file system, and `TooManyLinks` for a database that has another name: a client that uses that name
    /// shares neither of the two files beside this one.
    pub(crate) fn identity(&self) -> io::Result<Identity> {
        let main = inode::at(&self.given)?;
        if let Some(main) = &main
            && main.names > 1
        {
            return Err(io::Error::new(io::ErrorKind::TooManyLinks, OtherNames(main.names)));
        }
        let companion = |path: &Path| inode::at(path).map(|found| found.map(|found| found.id));
        Ok(Identity { main: main.map(|main| main.id), wal: companion(&self.wal)?, shm: companion(&self.shm)? })
    }
}

impl Identity {
    /// A database and its index, by made-up inodes.
    #[cfg(test)]
    pub(crate) fn of_test(main: u64, shm: u64) -> Self {
        Self { main: Some((u64::MAX, main)), wal: None, shm: Some((u64::MAX, shm)) }
    }

    /// Whether others have opened the same database since without what was beside it.
    pub(crate) fn has_newer_index_than(&self, earlier: &Self) -> bool {
        self.main == earlier.main && self.shm.is_some() && self.shm != earlier.shm
    }

    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.main == other.main
    }
}

/// How many names a database has. It must have one.
#[derive(Debug)]
struct OtherNames(u64);

impl fmt::Display for OtherNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has {} names (hard links), and SQLite keeps two more files beside each", self.0)
    }
}

impl Error for OtherNames {}

fn missing_file(given: &Path) -> Result<PathBuf, BackendError> {
    let no_file = || refusal(CONNECT, ErrorKind::Config, format!("{} names no file", given.display()));
    let name = given.file_name().ok_or_else(no_file)?;
    let directory = given.parent().ok_or_else(no_file)?;
    let directory = fs::canonicalize(directory).map_err(|error| {
        let remedy = format!("create the directory first: mkdir -p {}", directory.display());
        explain_io(CONNECT, given, error).with_remedy(remedy)
    })?;
    Ok(directory.join(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    use lock_host::{Clock, HostClock};

    use super::*;

    fn soon() -> Moment {
        HostClock.now() + Duration::from_millis(50)
    }

    fn located(directory: &Path) -> Location {
        Location::find(&directory.join("locks.db")).unwrap()
    }

    #[test]
    fn a_new_file_is_for_its_user_alone_and_nothing_of_an_old_one_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let location = located(directory.path());
        fs::write(&location.wal, "old").unwrap();
        let lock = location.lock(soon()).unwrap();
        assert_eq!(location.ensure(&lock, Missing::Refuse).unwrap_err().kind(), ErrorKind::Config);
        location.ensure(&lock, Missing::Create).unwrap();
        assert_eq!(fs::metadata(&location.main).unwrap().mode() & 0o777, 0o600);
        assert!(!location.wal.exists());
        fs::write(&location.wal, "new").unwrap();
        location.ensure(&lock, Missing::Create).unwrap();
        assert!(location.wal.exists());
    }

    #[test]
    fn companions_of_a_replaced_file_are_removed_and_those_of_the_present_one_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let location = located(directory.path());
        let lock = location.lock(soon()).unwrap();
        for path in [&location.main, &location.wal, &location.shm] {
            fs::write(path, "old").unwrap();
        }
        let earlier = location.identity().unwrap();
        location.disown(&lock, &earlier).unwrap();
        assert!(location.wal.exists() && location.shm.exists());

        let replacement = directory.path().join("copy");
        fs::write(&replacement, "new").unwrap();
        fs::rename(&replacement, &location.main).unwrap();
        assert_ne!(location.identity().unwrap(), earlier);
        location.disown(&lock, &earlier).unwrap();
        assert!(!location.wal.exists() && !location.shm.exists());
    }

    #[test]
    fn one_companion_that_is_left_of_a_replaced_file_is_enough_to_remove_both() {
        let directory = tempfile::tempdir().unwrap();
        let location = located(directory.path());
        let lock = location.lock(soon()).unwrap();
        let all = [&location.main, &location.wal, &location.shm];
        all.iter().for_each(|path| fs::write(path, "old").unwrap());
        let earlier = location.identity().unwrap();
        let _open = all.map(|path| File::open(path).unwrap());
        for path in [&location.main, &location.shm] {
            fs::remove_file(path).unwrap();
            fs::write(path, "new").unwrap();
        }
        location.disown(&lock, &earlier).unwrap();
        assert!(location.main.exists() && !location.wal.exists() && !location.shm.exists());
    }

    #[test]
    fn a_companion_that_cannot_be_removed_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let location = located(directory.path());
        let lock = location.lock(soon()).unwrap();
        fs::create_dir(&location.wal).unwrap();
        assert!(location.ensure(&lock, Missing::Create).is_err());
        assert!(!location.main.exists());
    }

    #[test]
    fn files_that_cannot_be_looked_at_are_not_taken_for_missing_ones() {
        let directory = tempfile::tempdir().unwrap();
        let parent = directory.path().join("locks");
        fs::create_dir(&parent).unwrap();
        let location = located(&parent);
        fs::remove_dir(&parent).unwrap();
        fs::write(&parent, "a plain file").unwrap();
        assert!(location.identity().is_err());
        assert!(Location::find(&parent.join("locks.db")).is_err());
    }

    #[test]
    fn a_relative_path_is_refused() {
        let error = Location::find(Path::new("no-such-file.db")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }

    #[test]
    fn a_database_with_a_newer_index_is_left_alone_and_one_that_lacks_a_companion_goes() {
        for (removed, again, goes) in [
            (&["-shm"][..], &[][..], true),
            (&["-shm"], &["-shm"], false),
            (&["-wal"], &[], true),
            (&["-wal"], &["-wal"], true),
            (&["-wal", "-shm"], &[], true),
            (&["-wal", "-shm"], &["-wal", "-shm"], false),
            (&[], &[], false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let location = located(directory.path());
            let lock = location.lock(soon()).unwrap();
            let all = [&location.main, &location.wal, &location.shm];
            all.iter().for_each(|path| fs::write(path, "old").unwrap());
            let earlier = location.identity().unwrap();
            let _open = all.map(|path| File::open(path).unwrap());
            removed.iter().for_each(|ending| fs::remove_file(beside(&location.main, ending)).unwrap());
            again.iter().for_each(|ending| fs::write(beside(&location.main, ending), "new").unwrap());
            let before = location.identity().unwrap();
            location.disown(&lock, &earlier).unwrap();
            let expected = if goes { Identity { main: None, wal: None, shm: None } } else { before };
            assert_eq!(location.identity().unwrap(), expected, "{removed:?} {again:?}");
        }
    }

    #[test]
    fn links_lead_to_the_real_file_and_what_is_no_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real.db");
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, directory.path().join("locks.db")).unwrap();
        assert_eq!(located(directory.path()).main, fs::canonicalize(&real).unwrap());

        let location = Location::find(directory.path()).unwrap();
        let lock = location.lock(soon()).unwrap();
        assert_eq!(location.ensure(&lock, Missing::Create).unwrap_err().kind(), ErrorKind::Config);

        let error = Location::find(&directory.path().join("no/locks.db")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.remedy().unwrap().contains("mkdir -p"), "{error}");
    }
}
