//! What servers say.

use lock_core::{Effect, ErrorKind};
use tonic::{Code, Status};

use super::meaning::{CHECK_SERVERS, Meaning};
use crate::txn;

const LOGIN: &str = "check user and password of the URL";
const RIGHTS: &str = "give the user a role that may read and write all keys that begin with the path of the URL: \
                      etcdctl role grant-permission ROLE --prefix=true readwrite PATH/";
const ROOM: &str = "make room: etcdctl compact, then etcdctl defrag, then etcdctl alarm disarm";
const LATER: &str = "try again; the servers do not keep up with their requests";
const SIZE: &str = "raise --max-request-bytes of the servers";

const BASE: &str =
    "stop all clients, and name a number above all tokens that were in use: leasehold etcd base URL --above TOKEN";

/// What servers say before they have read a request.
const TOO_LARGE: &str = "grpc: received message larger than max";

/// Nothing was carried out.
const fn refused(kind: ErrorKind) -> Meaning {
    Meaning::new(kind, Effect::None)
}

/// What a server's answer means. Its words say more than its code, which is that of unknown errors for some of them.
///
/// # Source
/// etcd: `rpctypes/error.go` has the words. Its server's `v3_server.go` and `apply.go` say which are returned before anything is carried out.
pub(super) fn meaning(status: &Status) -> Meaning {
    use ErrorKind::{Config, Denied, Unavailable, Unreachable};
    match status.message().trim_start_matches("etcdserver: ") {
        "too many requests" => refused(Unavailable).remedy(LATER),
        "request is too large" => refused(Config).remedy(SIZE),
        "too many operations in txn request" => refused(Config).remedy("raise --max-txn-ops of the servers"),
        // The transaction that fills the quota is carried out, and answered so.
        "mvcc: database space exceeded" => Meaning::new(Unavailable, Effect::Unknown).remedy(ROOM),
        "no leader" | "leader changed" | "raft proposal dropped" => refused(Unreachable).remedy(CHECK_SERVERS),
        "not capable" => refused(Unavailable).remedy("try again: the servers have not agreed on a version yet"),
        "rpc not supported for learner" => refused(Unavailable).remedy("name the servers that vote"),
        "corrupt cluster" => Meaning::new(Unavailable, Effect::Unknown).remedy("see etcdctl alarm list"),
        "user name is empty" => refused(Denied).remedy("the servers want a user: write etcd://USER:PASSWORD@HOST"),
        "authentication failed, invalid user ID or password" | "user name not found" | "invalid auth token" => {
            refused(Denied).remedy(LOGIN)
        }
        "permission denied" | "role name not found" | "auth: permission not given" => refused(Denied).remedy(RIGHTS),
        _ => by_code(status),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the other codes mean that the servers and this crate differ")]
fn by_code(status: &Status) -> Meaning {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            Meaning::new(ErrorKind::Unreachable, Effect::Unknown).remedy(CHECK_SERVERS)
        }
        Code::Unauthenticated | Code::PermissionDenied => refused(ErrorKind::Denied).remedy(LOGIN),
        Code::ResourceExhausted if status.message().starts_with(TOO_LARGE) => refused(ErrorKind::Config).remedy(SIZE),
        Code::ResourceExhausted => Meaning::new(ErrorKind::Unavailable, Effect::Unknown).remedy(ROOM),
        Code::NotFound | Code::Aborted => refused(ErrorKind::Unavailable),
        Code::FailedPrecondition if txn::is_no_base(status) => refused(ErrorKind::Config).remedy(BASE),
        Code::FailedPrecondition if txn::is_damaged_base(status) => {
            Meaning::new(ErrorKind::Config, Effect::Unknown).remedy(BASE)
        }
        Code::Unimplemented => refused(ErrorKind::Unsupported).remedy("name servers with etcd 3.4 or later"),
        Code::InvalidArgument | Code::FailedPrecondition => refused(ErrorKind::Protocol),
        _ => Meaning::new(ErrorKind::Protocol, Effect::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_told_from_what_may_have_been_carried_out() {
        use ErrorKind::{Config, Denied, Protocol, Unavailable, Unreachable, Unsupported};
        for (code, words, kind, effect) in [
            (Code::Unknown, "etcdserver: too many requests", Unavailable, Effect::None),
            (Code::InvalidArgument, "etcdserver: request is too large", Config, Effect::None),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Unavailable, Effect::Unknown),
            (Code::ResourceExhausted, "grpc: received message larger than max (3 vs. 2)", Config, Effect::None),
            (Code::Unavailable, "etcdserver: no leader", Unreachable, Effect::None),
            (Code::Unknown, "raft proposal dropped", Unreachable, Effect::None),
            (Code::Unavailable, "etcdserver: request timed out", Unreachable, Effect::Unknown),
            (Code::Unavailable, "etcdserver: server stopped", Unreachable, Effect::Unknown),
            (Code::Unavailable, "etcdserver: rpc not supported for learner", Unavailable, Effect::None),
            (Code::NotFound, "etcdserver: requested lease not found", Unavailable, Effect::None),
            (Code::InvalidArgument, "etcdserver: user name is empty", Denied, Effect::None),
            (Code::PermissionDenied, "etcdserver: permission denied", Denied, Effect::None),
            (Code::InvalidArgument, "etcdserver: duplicate key given in txn request", Protocol, Effect::None),
            (Code::Unimplemented, "unknown service etcdserverpb.KV", Unsupported, Effect::None),
            (Code::OutOfRange, "decoded message length too large", Protocol, Effect::Unknown),
        ] {
            let told = meaning(&Status::new(code, words));
            assert_eq!((told.kind, told.effect), (kind, effect), "{words}");
        }
    }
}
