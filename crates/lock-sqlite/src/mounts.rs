//! Databases that are mounted as single files, which this store must not use: SQLite's other two files are beside each
//! name of the database, so a client that uses another name shares neither.

use std::path::Path;

use lock_core::BackendError;
#[cfg(target_os = "linux")]
use lock_core::{ErrorKind, Operation};

#[cfg(target_os = "linux")]
use crate::error::{refusal, unknown};

#[cfg(target_os = "linux")]
const TABLE: &str = "/proc/self/mountinfo";

/// Refuses a file that is a mount point itself. `main` is free of symbolic links.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_mounted_file(given: &Path, main: &Path) -> Result<(), BackendError> {
    let table = std::fs::read(TABLE)
        .map_err(|error| unknown(&format!("whether {} is mounted as a single file", given.display()), TABLE, error))?;
    if !is_mount_point(&table, main) {
        return Ok(());
    }
    let message = format!(
        "{} is mounted as a single file, and SQLite keeps two more files beside it, which others would not see",
        given.display()
    );
    Err(refusal(Operation::Connect, ErrorKind::Config, message)
        .with_remedy("mount its directory instead, in every container that uses it"))
}

/// Cannot tell here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_mounted_file(_given: &Path, _main: &Path) -> Result<(), BackendError> {
    Ok(())
}

/// Whether the table has a mount at exactly this path.
///
/// # Source
/// `proc_pid_mountinfo(5)` of the Linux manual pages: the fifth field is the mount point as this process sees it.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the table is that of Linux"))]
fn is_mount_point(table: &[u8], path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    let mut points = table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    points.any(|point| unescaped(point) == path)
}

/// Spaces, tabs, line ends and backslashes are written as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let (byte, after) = match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), after)
            }
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[u8] = br"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
31 22 0:25 / /data rw,nosuid - tmpfs tmpfs rw
40 31 254:0 /var/lib/locks.db /data/locks.db rw,relatime - ext4 /dev/root rw
41 31 254:0 /x /data/a\040file\134\012 rw,relatime - ext4 /dev/root rw
42 31 254:0 /data/source.db /data/\303\274.db rw master:1 - ext4 /dev/root rw
";

    #[test]
    fn only_the_mount_point_itself_is_one() {
        for mounted in ["/", "/data", "/data/locks.db", "/data/a file\\\n", "/data/ü.db"] {
            assert!(is_mount_point(LINES, Path::new(mounted)), "{mounted}");
        }
        for plain in ["/data/locks", "/data/locks.db-wal", "/var/lib/locks.db", "/data/source.db", "/data/a", "rw", ""]
        {
            assert!(!is_mount_point(LINES, Path::new(plain)), "{plain}");
        }
        assert!(!is_mount_point(b"", Path::new("/data")));
    }

    #[test]
    fn what_is_no_escape_is_left_as_it_is() {
        assert_eq!(unescaped(br"a\04\9\400b\"), br"a\04\9\400b\");
    }
}
