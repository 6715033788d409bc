//! The versions of etcd that this crate works with.

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
}
