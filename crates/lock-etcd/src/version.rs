//! The versions of etcd that this crate works with, and those with faults that endanger locks.

use tonic::Status;

/// The first version in which a client numbers its watches.
const OLDEST: (u32, u32) = (3, 4);

/// Refuses a version that is too old. One that is not understood is taken for a new one.
pub(crate) fn check(version: &str) -> Result<(), Status> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => {
            Err(Status::unimplemented(format!("this is etcd {version}")))
        }
        _ => Ok(()),
    }
}

/// A fault, and the first versions 3.4.X, 3.5.X and 3.6.X without it.
struct Fault {
    means: &'static str,
    fixed: [u32; 3],
}

/// Those that do no harm are not among them: leaders that were suspended end leases of others, and answer reads with old data.
///
/// # Source
/// etcd's changelogs. The pull requests of 3.5 are 13908, 14178 and 14899.
const FAULTS: [Fault; 2] = [
    Fault { means: "after a crash, servers can have different data", fixed: [0, 3, 0] },
    Fault { means: "a server can crash when a client breaks off a transaction that only reads", fixed: [23, 7, 0] },
];

/// The oldest versions without any of them.
pub(crate) const FIXED: &str = "3.4.23 or 3.5.7";

/// What a server of this version may do to locks. `None` if that is no version.
pub(crate) fn faults(version: &str) -> Option<Vec<&'static str>> {
    let mut numbers = version.split(['.', '-']).map(str::parse);
    let mut next = || numbers.next()?.ok();
    let (major, minor, patch): (u32, u32, u32) = (next()?, next()?, next()?);
    let has = |fault: &&Fault| match (major, minor.checked_sub(4).map(usize::try_from)) {
        (3, Some(Ok(line))) => fault.fixed.get(line).is_some_and(|fixed| patch < *fixed),
        (major, _) => major < 4,
    };
    Some(FAULTS.iter().filter(has).map(|fault| fault.means).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_before_3_4_are_refused() {
        for version in ["3.4.0", "3.5.1", "3.10.0-rc.0", "4.0.0", "", "unknown"] {
            assert!(check(version).is_ok(), "{version}");
        }
        for version in ["2.3.8", "3.3.27", "3.0.0+git"] {
            assert!(check(version).unwrap_err().message().contains(version), "{version}");
        }
    }

    #[test]
    fn versions_are_known_by_their_faults() {
        let count = |version| faults(version).map(|faults| faults.len());
        let versions = ["3.3.27", "3.4.0", "3.4.22", "3.4.23", "3.5.1", "3.5.3", "3.5.6", "3.5.7", "3.6.0"];
        assert_eq!(versions.map(count), [2, 1, 1, 0, 2, 1, 1, 0, 0].map(Some));
        assert_eq!(["3.7.0-rc.1", "4.0.0", "main", "3.5"].map(count), [Some(0), Some(0), None, None]);
    }
}
