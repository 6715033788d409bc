//! File systems that several machines share, which this store must not use.

use std::path::Path;

use lock_core::BackendError;
#[cfg(target_os = "linux")]
use lock_core::{ErrorKind, Operation};

#[cfg(target_os = "linux")]
use crate::error::{explain_io, refusal};

/// What is known of who writes to a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// This kernel alone.
    ThisKernel,
    /// Another machine may write to it as well.
    Unknown,
}

/// Who writes to the file system of this path.
#[cfg(target_os = "linux")]
pub(crate) fn writers_of(path: &Path) -> std::io::Result<Writers> {
    let stat = rustix::fs::statfs(path)?;
    Ok(u32::try_from(stat.f_type).map_or(Writers::Unknown, writers))
}

/// Nobody has been seen to share one elsewhere.
#[cfg(not(target_os = "linux"))]
pub(crate) fn writers_of(_path: &Path) -> std::io::Result<Writers> {
    Ok(Writers::ThisKernel)
}

/// Refuses a path that is known to be on one of them.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_network(given: &Path, path: &Path) -> Result<(), BackendError> {
    let stat = rustix::fs::statfs(path).map_err(|error| explain_io(Operation::Connect, given, error.into()))?;
    let Some(system) = u32::try_from(stat.f_type).ok().and_then(shared_file_system) else { return Ok(()) };
    let message = format!(
        "{} is on {system}, which other machines write to, and whose locks and shared memory SQLite cannot rely on",
        given.display()
    );
    let remedy = "choose a path on a local disk, or another store, such as redis://, for several machines";
    Err(refusal(Operation::Connect, ErrorKind::Config, message).with_remedy(remedy))
}

/// Cannot tell here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_network(_given: &Path, _path: &Path) -> Result<(), BackendError> {
    Ok(())
}

/// The file systems that several machines share, by their magic numbers. FUSE is not among them: it may be anything,
/// and containers use it.
///
/// # Source
/// `statfs(2)` of the Linux manual pages, and the kernel's `linux/magic.h`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the numbers are those of Linux"))]
const SHARED: [(u32, &str); 17] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x786f_4256, "a shared folder of VirtualBox"),
    (0xbacb_acbc, "a shared folder of VMware"),
];

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the numbers are those of Linux"))]
fn shared_file_system(magic: u32) -> Option<&'static str> {
    SHARED.iter().find(|(shared, _)| *shared == magic).map(|(_, name)| *name)
}

/// The file systems that one kernel alone writes to, by their magic numbers. A virtual machine mounts a directory of its host as FUSE
/// (virtiofs), so FUSE is not among them, and neither is what nobody has looked at.
///
/// # Source
/// `statfs(2)` of the Linux manual pages, the kernel's `linux/magic.h`, and the sources of OpenZFS and bcachefs.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the numbers are those of Linux"))]
const LOCAL: [u32; 13] = [
    0xef53,      /* ext2, ext3, ext4 */
    0x5846_5342, /* XFS */
    0x9123_683e, /* btrfs */
    0x0102_1994, /* tmpfs */
    0x8584_58f6, /* ramfs */
    0x794c_7630, /* overlayfs */
    0x2fc1_2fc1, /* ZFS */
    0xf2f5_2010, /* F2FS */
    0xca45_1a4e, /* bcachefs */
    0x3153_464a, /* JFS */
    0x5265_4973, /* ReiserFS */
    0xf15f,      /* eCryptfs */
    0x2011_bab0, /* exFAT */
];

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the numbers are those of Linux"))]
fn writers(magic: u32) -> Writers {
    if LOCAL.contains(&magic) { Writers::ThisKernel } else { Writers::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_several_machines_are_refused() {
        for (magic, name) in [(0x6969, "NFS"), (0xfe53_4d42, "SMB"), (0x0102_1997, "9P")] {
            assert_eq!(shared_file_system(magic), Some(name));
        }
        for local in [
            0xef53,      /* ext4 */
            0x9123_683e, /* btrfs */
            0x0102_1994, /* tmpfs */
            0x6573_5546, /* FUSE */
        ] {
            assert_eq!(shared_file_system(local), None);
        }
    }

    #[test]
    fn only_known_file_systems_are_this_kernels_own() {
        for (magic, expected) in [
            (0xef53, Writers::ThisKernel),
            (0x794c_7630, Writers::ThisKernel),
            (0x6573_5546, Writers::Unknown),
            (0x6969, Writers::Unknown),
            (0, Writers::Unknown),
        ] {
            assert_eq!(writers(magic), expected, "{magic:#x}");
        }
        assert!(SHARED.iter().all(|(shared, _)| writers(*shared) == Writers::Unknown));
    }
}
