//! What the answers of the servers mean for a request.

mod answers;
mod connection;
mod meaning;

use std::error::Error;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use tonic::Status;

use self::meaning::Meaning;
use crate::EtcdConfig;

/// The store's name in errors.
pub(crate) const BACKEND: &str = "etcd";

/// An error of a request.
pub(crate) fn new(operation: Operation, kind: ErrorKind, effect: Effect, message: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, operation, kind, effect, message)
}

fn meaning(status: &Status) -> Meaning {
    connection::meaning(status).unwrap_or_else(|| answers::meaning(status))
}

/// The error of a request that was sent.
pub(crate) fn of(operation: Operation, status: Status) -> BackendError {
    let meaning = meaning(&status);
    told(operation, meaning, status, "")
}

/// The same error of a request that had others before it, which were carried out.
pub(crate) fn after_others(error: BackendError) -> BackendError {
    let Some(status) = error.source().and_then(|source| source.downcast_ref::<Status>()) else { return error };
    let meaning = Meaning { effect: Effect::Unknown, ..meaning(status) };
    told(error.operation(), meaning, status.clone(), "")
}

/// Whether it is sure that the request was not carried out.
pub(crate) fn is_refusal(status: &Status) -> bool {
    meaning(status).effect == Effect::None
}

/// Whether the servers write nothing because they have no room.
pub(crate) fn is_full(status: &Status) -> bool {
    status.code() == tonic::Code::ResourceExhausted
}

/// The error of a connection. Whatever was sent, it touched no lock.
pub(crate) fn of_opening(config: &EtcdConfig, status: Status) -> BackendError {
    let meaning = Meaning { effect: Effect::None, ..meaning(&status) };
    let unreachable = meaning.kind == ErrorKind::Unreachable && status.source().is_some();
    let before = if unreachable { "no connection to " } else { "" };
    let told = told(Operation::Connect, meaning, status, &format!("{before}{}: ", names(config)));
    if unreachable { told.with_remedy(check_ports(config)) } else { told }
}

fn names(config: &EtcdConfig) -> String {
    config.servers().collect::<Vec<_>>().join(", ")
}

/// What to do if no connection is made. Servers close those that are not what they expect, and do not say why.
const fn check_ports(config: &EtcdConfig) -> &'static str {
    match config.tls() {
        None => {
            "check that the servers are running and reachable, and that these ports are not those for TLS: for them, write etcds://"
        }
        Some(_) => {
            "check that the servers are running and reachable, that these are their ports for TLS, and that they accept the client's certificate"
        }
    }
}

fn told(operation: Operation, meaning: Meaning, status: Status, before: &str) -> BackendError {
    let Meaning { kind, effect, remedy } = meaning;
    let message = format!("{before}{}", reason(&status));
    let told = new(operation, kind, effect, message).with_source(status);
    remedy.map_or(told.clone(), |remedy| told.with_remedy(remedy))
}

fn reason(status: &Status) -> String {
    status.source().map_or_else(|| status.message().to_owned(), |source| innermost(source).to_string())
}

/// The innermost error: the outer ones say only that there is one.
pub(crate) fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost
}

/// No answer came in time.
pub(crate) fn timeout(operation: Operation, within: Duration) -> BackendError {
    new(operation, ErrorKind::Timeout, Effect::Unknown, format!("no answer within {within:?}"))
}

/// No server answered a new client in time.
pub(crate) fn silence(config: &EtcdConfig, within: Duration) -> BackendError {
    let message = format!("no answer of {} within {within:?}", names(config));
    new(Operation::Connect, ErrorKind::Timeout, Effect::Unknown, message).with_remedy(check_ports(config))
}
