//! Which file is at a path.

use std::io;
use std::path::Path;

/// What tells one file from another, and by how many names it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inode {
    /// Device and number.
    pub(crate) id: (u64, u64),
    pub(crate) names: u64,
}

/// The file at this path, if there is one.
///
/// Asks for no times. Since Linux 6.13, the first write after somebody has asked gets an exact time, and the `fsync` after it has to
/// write the inode as well: that adds half to the time of a commit.
#[cfg(target_os = "linux")]
pub(crate) fn at(path: &Path) -> io::Result<Option<Inode>> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    use rustix::io::Errno;

    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO | StatxFlags::NLINK) {
        Ok(found) => {
            let device = makedev(found.stx_dev_major, found.stx_dev_minor);
            Ok(Some(Inode { id: (device, found.stx_ino), names: found.stx_nlink.into() }))
        }
        Err(Errno::NOENT) => Ok(None),
        // Some sandboxes refuse this call.
        Err(Errno::NOSYS) => with_times(path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use with_times as at;

/// The same where a question for a part of this is not possible.
pub(crate) fn with_times(path: &Path) -> io::Result<Option<Inode>> {
    use std::os::unix::fs::MetadataExt;

    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(Inode { id: (found.dev(), found.ino()), names: found.nlink() })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_ways_to_look_see_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let (file, other) = (directory.path().join("a"), directory.path().join("b"));
        assert!(at(&file).unwrap().is_none() && with_times(&file).unwrap().is_none());
        fs::write(&file, "").unwrap();
        fs::hard_link(&file, &other).unwrap();
        let [one, same] = [at(&file), with_times(&other)].map(|found| found.unwrap().unwrap());
        assert_eq!((one.id, one.names), (same.id, same.names));
        assert_eq!(one.names, 2);
        assert!(at(&file.join("below")).is_err() && with_times(&file.join("below")).is_err());
    }

    /// An exact time is ahead of the coarse clock. Others may have moved the file system's clock on, so one of several tries counts.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_look_does_not_ask_for_an_exact_time_of_the_next_write() {
        use rustix::time::{ClockId, clock_gettime};
        use std::os::unix::fs::MetadataExt;

        let directory = tempfile::tempdir().unwrap();
        let is_coarse = |number: u32| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let file = directory.path().join(number.to_string());
            fs::write(&file, "a").unwrap();
            at(&file).unwrap();
            fs::write(&file, "b").unwrap();
            let clock = clock_gettime(ClockId::RealtimeCoarse);
            let written = fs::metadata(&file).unwrap();
            (written.mtime(), written.mtime_nsec()) <= (clock.tv_sec, clock.tv_nsec)
        };
        assert!((0..20).any(is_coarse));
    }
}
