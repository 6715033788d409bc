//! What a server says of itself, and versions with faults that endanger locks.

use prost::Message;
use tonic::Status;

use crate::servers::Servers;

#[derive(Clone, PartialEq, Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
struct StatusHeader {
    #[prost(uint64, tag = "1")]
    cluster_id: u64,
    #[prost(uint64, tag = "2")]
    member_id: u64,
}

/// # Source
/// etcd, `rpc.proto`.
#[derive(Clone, PartialEq, Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<StatusHeader>,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(uint64, tag = "4")]
    leader: u64,
    #[prost(string, repeated, tag = "8")]
    errors: Vec<String>,
    #[prost(bool, tag = "10")]
    is_learner: bool,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) version: String,
    pub(crate) cluster: u64,
    pub(crate) is_leader: bool,
    /// Whether it has no vote, and serves nobody.
    pub(crate) is_learner: bool,
    /// Its alarms, as it writes them.
    pub(crate) alarms: Vec<String>,
}

/// Asks a server.
pub(crate) async fn ask(servers: &Servers) -> Result<Told, Status> {
    let (told, _): (StatusResponse, usize) = servers.ask("/etcdserverpb.Maintenance/Status", StatusRequest {}).await?;
    let header = told.header.unwrap_or_default();
    Ok(Told {
        version: told.version,
        cluster: header.cluster_id,
        is_leader: told.leader == header.member_id,
        is_learner: told.is_learner,
        alarms: told.errors,
    })
}

/// A fault, and the first versions 3.4.X, 3.5.X and 3.6.X without it.
struct Fault {
    means: &'static str,
    fixed: [u32; 3],
}

/// # Source
/// etcd's changelogs. The pull requests of 3.5 are 17425, 21387 and 21421, 13908, 14178 and 14899.
const FAULTS: [Fault; 4] = [
    Fault {
        means: "a leader that hangs, for instance on its disk, can end leases that its successor has renewed",
        fixed: [31, 13, 0],
    },
    Fault { means: "a server that was suspended can answer with old data", fixed: [42, 28, 9] },
    Fault { means: "after a crash, servers can have different data", fixed: [0, 3, 0] },
    Fault { means: "a server can crash when a client breaks off a transaction that only reads", fixed: [23, 7, 0] },
];

/// The oldest versions without any of them.
pub(crate) const FIXED: &str = "3.4.42, 3.5.28 or 3.6.9";

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
    fn versions_are_known_by_their_faults() {
        let count = |version| faults(version).map(|faults| faults.len());
        let versions = ["3.3.27", "3.4.0", "3.4.31", "3.4.42", "3.5.1", "3.5.4", "3.5.13", "3.5.28", "3.6.8", "3.6.9"];
        assert_eq!(versions.map(count), [4, 3, 1, 0, 4, 3, 1, 0, 1, 0].map(Some));
        assert_eq!(["3.7.0-rc.1", "4.0.0", "main", "3.5"].map(count), [Some(0), Some(0), None, None]);
    }
}
