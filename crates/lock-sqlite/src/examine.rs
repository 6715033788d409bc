//! What operators should know of a file.

use std::os::unix::fs::MetadataExt;

use lock_core::examine::Check;

use crate::SqliteConfig;

/// Below this many free bytes, it is mentioned. Chosen: far more than the file of some thousand locks.
const FREE_MIN: u64 = 64 << 20;

/// Looks at the file and its directory. A network file system was refused on connecting.
pub(crate) fn examine(config: &SqliteConfig) -> Vec<Check> {
    vec![
        Check::ok("reach", format!("opened {}", config.path.display())),
        Check::ok("version", format!("SQLite {}", rusqlite::version())),
        Check::ok("file system", "a local one, with a write-ahead log; each commit reaches the disk"),
        access(config),
        space(config),
        Check::ok("clock", "leases are timed by this machine's own clock"),
    ]
}

fn access(config: &SqliteConfig) -> Check {
    match std::fs::metadata(&config.path) {
        Ok(file) if file.mode() & 0o002 != 0 => {
            Check::remark("access", "every user of this machine may write to the file, and so take and end all locks")
                .with_remedy(format!("chmod o-w {}", config.path.display()))
        }
        Ok(_) => Check::ok("access", "only its owner and group may write to the file"),
        Err(error) => Check::remark("access", format!("cannot tell who may write to the file: {error}")),
    }
}

fn space(config: &SqliteConfig) -> Check {
    match rustix::fs::statvfs(&config.path) {
        Ok(system) if system.f_bavail.saturating_mul(system.f_frsize) < FREE_MIN => Check::finding(
            "space",
            format!(
                "{} MB are free on its disk: with none, locks are neither granted nor renewed",
                system.f_bavail.saturating_mul(system.f_frsize) >> 20
            ),
        )
        .with_remedy("free some space"),
        Ok(_) => Check::ok("space", "there is room on its disk"),
        Err(error) => Check::remark("space", format!("cannot tell how much room is on its disk: {error}")),
    }
}
