//! What the client's errors mean for a request.

use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, LockName, Operation};
use zookeeper_client::Error;

/// The store's name in errors.
pub(crate) const BACKEND: &str = "zookeeper";

/// An error of a request.
pub(crate) fn new(operation: Operation, kind: ErrorKind, effect: Effect, message: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, operation, kind, effect, message)
}

/// The error of a request that was sent.
pub(crate) fn of(operation: Operation, error: Error) -> BackendError {
    let (kind, effect, remedy) = meaning(&error);
    because(error, remedy, |message| new(operation, kind, effect, message))
}

/// The error of a session that could not be opened. Whatever was sent, it touched no lock.
pub(crate) fn of_opening(servers: &str, error: Error) -> BackendError {
    let (kind, _, remedy) = meaning(&error);
    because(error, remedy, |message| {
        new(Operation::Connect, kind, Effect::None, format!("no session with one of {servers}: {message}"))
    })
}

fn because(error: Error, remedy: Option<&str>, new: impl FnOnce(String) -> BackendError) -> BackendError {
    let told = new(error.to_string()).with_source(error);
    remedy.map_or(told.clone(), |remedy| told.with_remedy(remedy))
}

/// How the client begins to say that certificates and keys do not fit each other.
const NOT_TLS: [&str; 2] = ["invalid client private key", "fail to create tls"];

#[allow(clippy::wildcard_enum_match_arm, reason = "the client's errors are many, and may become more")]
fn meaning(error: &Error) -> (ErrorKind, Effect, Option<&'static str>) {
    match error {
        Error::NoAuth | Error::InvalidAcl | Error::AuthFailed => {
            // The entry may have been created, and only the list be denied.
            (ErrorKind::Denied, Effect::Unknown, Some("check the login of the URL, and the ACLs of the nodes"))
        }
        Error::QuotaExceeded => (ErrorKind::Unavailable, Effect::None, Some("raise the quota of the path")),
        Error::NotReadOnly => (
            ErrorKind::Unavailable,
            Effect::None,
            Some("this server has lost the others: wait until it is back, or name all servers"),
        ),
        Error::NoHosts => {
            (ErrorKind::Unreachable, Effect::None, Some("check that the servers are running and reachable"))
        }
        // They are only available as texts.
        Error::Custom(failure) if NOT_TLS.iter().any(|text| failure.to_string().starts_with(text)) => (
            ErrorKind::Config,
            Effect::None,
            Some("check that sslkey is the key of sslcert, and what sslrootcert holds"),
        ),
        // Custom errors are those of the connection: the system's, or that nothing arrives.
        Error::ConnectionLoss | Error::Timeout | Error::Custom(_) => {
            (ErrorKind::Unreachable, Effect::Unknown, Some("check that the servers are running and reachable"))
        }
        Error::SessionExpired | Error::SessionMoved | Error::ClientClosed | Error::Throttled => {
            (ErrorKind::Unavailable, Effect::Unknown, None)
        }
        _ => (ErrorKind::Protocol, Effect::Unknown, None),
    }
}

/// No answer came in time.
pub(crate) fn timeout(operation: Operation, within: Duration) -> BackendError {
    new(operation, ErrorKind::Timeout, Effect::Unknown, format!("no answer within {within:?}"))
}

/// The directory of a lock has entries of the other layout.
pub(crate) fn of_other_layout(name: &LockName, used: &str, asked: &str) -> BackendError {
    let message = format!("the name is in use as {used}, not as {asked}");
    let refused = new(Operation::Acquire, ErrorKind::OtherKind, Effect::None, message).with_name(name);
    refused.with_remedy("choose another name for one of them")
}
