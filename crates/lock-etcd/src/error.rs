//! What the answers of the servers mean for a request.

use std::error::Error;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use tonic::{Code, Status};

/// The store's name in errors.
pub(crate) const BACKEND: &str = "etcd";

/// An error of a request.
pub(crate) fn new(operation: Operation, kind: ErrorKind, effect: Effect, message: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, operation, kind, effect, message)
}

/// The error of a request that was sent.
pub(crate) fn of(operation: Operation, status: Status) -> BackendError {
    let (kind, effect, remedy) = meaning(&status);
    let told = new(operation, kind, effect, reason(&status)).with_source(status);
    remedy.map_or(told.clone(), |remedy| told.with_remedy(remedy))
}

/// The error of a connection. Whatever was sent, it touched no lock.
pub(crate) fn of_opening(servers: &str, status: Status) -> BackendError {
    let (kind, _, remedy) = meaning(&status);
    let message = format!("no answer of {servers}: {}", reason(&status));
    let told = new(Operation::Connect, kind, Effect::None, message).with_source(status);
    remedy.map_or(told.clone(), |remedy| told.with_remedy(remedy))
}

/// The innermost error: the outer ones say only that there is one.
fn reason(status: &Status) -> String {
    let Some(mut innermost) = status.source() else { return status.message().to_owned() };
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// No answer came in time.
pub(crate) fn timeout(operation: Operation, within: Duration) -> BackendError {
    new(operation, ErrorKind::Timeout, Effect::Unknown, format!("no answer within {within:?}"))
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the other codes mean that the servers and this crate differ")]
fn meaning(status: &Status) -> (ErrorKind, Effect, Option<&'static str>) {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => (
            ErrorKind::Unreachable,
            Effect::Unknown,
            Some("check that a majority of the servers is running and reachable"),
        ),
        Code::Unauthenticated | Code::PermissionDenied => {
            (ErrorKind::Denied, Effect::None, Some("check user and password of the URL, and the role of the user"))
        }
        // The transaction that fills the quota is carried out, and answered so.
        Code::ResourceExhausted => (
            ErrorKind::Unavailable,
            Effect::Unknown,
            Some("make room: etcdctl compact, then etcdctl defrag, then etcdctl alarm disarm"),
        ),
        Code::NotFound | Code::Aborted => (ErrorKind::Unavailable, Effect::None, None),
        Code::FailedPrecondition => (
            ErrorKind::Config,
            Effect::None,
            Some("write a number above all fencing tokens that were in use into leasehold-base, with etcdctl put"),
        ),
        _ => (ErrorKind::Protocol, Effect::Unknown, None),
    }
}
