//! What the server's errors mean for a request.

use std::error::Error as _;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use tokio_postgres::error::{DbError, SqlState};

/// The store's name in errors.
pub(crate) const BACKEND: &str = "postgres";

/// An error of a request whose operation its caller knows.
pub(crate) fn new(kind: ErrorKind, effect: Effect, message: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, Operation::Connect, kind, effect, message)
}

/// Whether the transaction ended because others were in its way. Nothing happened, and it may be run again.
pub(crate) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code))
}

/// Whether the tables or functions are not there.
pub(crate) fn is_without_schema(error: &tokio_postgres::Error) -> bool {
    let missing = [SqlState::UNDEFINED_FUNCTION, SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
    error.code().is_some_and(|code| missing.contains(code))
}

/// Whether a commit is confirmed without the standby that it waited for, because somebody has cancelled the wait.
///
/// # Source
/// PostgreSQL, `SyncRepWaitForLSN` in `syncrep.c`: a warning with this code, ahead of the answer. Its text may be translated.
pub(crate) fn is_without_standby(notice: &DbError) -> bool {
    notice.code() == &SqlState::WARNING && notice.routine() == Some("SyncRepWaitForLSN")
}

/// The error of a statement that was sent.
pub(crate) fn of(error: tokio_postgres::Error, effect: Effect) -> BackendError {
    describe("", error, effect)
}

/// A server did not accept a connection.
pub(crate) fn of_server(server: &str, error: tokio_postgres::Error) -> BackendError {
    // The driver has no kind of its own for one that does not accept writes.
    if error.source().is_some_and(|source| source.to_string().contains("does not allow writes")) {
        let message = format!("{server} is a standby, or read-only");
        return new(ErrorKind::Unavailable, Effect::None, message)
            .with_remedy("name the primary, or all servers: one of them accepts writes");
    }
    describe(&format!("{server}: "), error, Effect::None)
}

fn describe(place: &str, error: tokio_postgres::Error, effect: Effect) -> BackendError {
    let Some(told) = error.as_db_error() else { return unanswered(place, error, effect) };
    let (code, message) = (told.code().clone(), told.message().to_owned());
    let (kind, remedy) = meaning(&code);
    // A server that shuts down may have done what it did not answer.
    let effect = if kind == ErrorKind::Unreachable { effect } else { Effect::None };
    let told = new(kind, effect, format!("{place}{message} ({})", code.code())).with_source(error);
    remedy.map_or(told.clone(), |remedy| told.with_remedy(remedy))
}

/// A pool of the user's gave no connection, so nothing was sent.
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
pub(crate) fn of_pool(failure: &dyn std::error::Error) -> BackendError {
    new(ErrorKind::Unreachable, Effect::None, format!("the pool gave no connection: {failure}"))
        .with_remedy("check that the server is running and reachable, or make the pool larger")
}

/// Running the whole output again would fail at the schema that is there.
const RIGHTS: &str = "as the owner, run the lines with GRANT of the output of `leasehold postgres schema`";

/// A commit that waits for a standby keeps its rows locked meanwhile.
const BUSY: &str =
    "check the disk, the age of transactions, and that a synchronous standby is connected if one is demanded";

fn meaning(code: &SqlState) -> (ErrorKind, Option<&'static str>) {
    let class = code.code().get(..2).unwrap_or_default();
    match (class, code.code()) {
        ("28", _) => (ErrorKind::Denied, Some("check user and password, and pg_hba.conf on the server")),
        (_, "3D000") => (ErrorKind::Config, Some("create the database, or correct its name in the URL")),
        (_, "42501") => (ErrorKind::Denied, Some(RIGHTS)),
        (_, "25006") => (ErrorKind::Unavailable, Some("name the primary, or all servers: one of them accepts writes")),
        (_, "55P03") => (ErrorKind::Unavailable, Some(BUSY)),
        // A pooler says 08P01 of a server that it has lost: the statement may have been carried out.
        ("08", _) | (_, "40003" | "57P01" | "57P02") => (ErrorKind::Unreachable, None),
        (_, "57P03") | ("53" | "57" | "58", _) => (ErrorKind::Unavailable, None),
        ("40", _) => (ErrorKind::Unavailable, None),
        (_, "42P06") => {
            (ErrorKind::Config, Some("use another schema by schema=NAME: this one was not made by this library"))
        }
        ("3F" | "42", _) => {
            (ErrorKind::Unavailable, Some("try again: the tables may have been removed, and will be created again"))
        }
        _ => (ErrorKind::Protocol, None),
    }
}

fn unanswered(place: &str, error: tokio_postgres::Error, effect: Effect) -> BackendError {
    let because = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let message = format!("{place}{error}{because}");
    if message.contains("password missing") {
        let remedy =
            "give it in the URL, in PGPASSWORD or in the file that PGPASSFILE names, which only its owner may read";
        return new(ErrorKind::Denied, Effect::None, format!("{place}the server wants a password"))
            .with_source(error)
            .with_remedy(remedy);
    }
    if let Some(remedy) = tls_remedy(&message) {
        return new(ErrorKind::Config, Effect::None, message).with_source(error).with_remedy(remedy);
    }
    new(ErrorKind::Unreachable, effect, message)
        .with_source(error)
        .with_remedy("check that the server is running and reachable")
}

/// What to do if the connection could not be encrypted; `None` if something else is wrong.
fn tls_remedy(message: &str) -> Option<&'static str> {
    if message.contains("does not support TLS") {
        return Some("turn ssl on at the server; sslmode=disable sends the password and all requests unencrypted");
    }
    if message.contains("CaUsedAsEndEntity") {
        return Some(
            "this certificate is its own authority: issue the server's certificate from a CA, or without CA:TRUE",
        );
    }
    let remedy = "trust the authority of the server's certificate by sslrootcert=FILE, and name the host as the certificate does";
    message.contains("certificate").then_some(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_carried_out_is_told_from_what_was_not() {
        for (code, kind) in [
            ("08P01", ErrorKind::Unreachable),
            ("08006", ErrorKind::Unreachable),
            ("40003", ErrorKind::Unreachable),
            ("57P01", ErrorKind::Unreachable),
            ("57P03", ErrorKind::Unavailable),
            ("40001", ErrorKind::Unavailable),
            ("53300", ErrorKind::Unavailable),
            ("28P01", ErrorKind::Denied),
            ("42501", ErrorKind::Denied),
            ("42P06", ErrorKind::Config),
            ("42883", ErrorKind::Unavailable),
            ("22023", ErrorKind::Protocol),
        ] {
            assert_eq!(meaning(&SqlState::from_code(code)).0, kind, "{code}");
        }
    }

    #[test]
    fn what_is_wrong_with_tls_has_its_own_remedy() {
        for (message, remedy) in [
            ("server does not support TLS", "turn ssl on"),
            ("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))", "without CA:TRUE"),
            ("invalid peer certificate: UnknownIssuer", "sslrootcert=FILE"),
        ] {
            assert!(tls_remedy(message).is_some_and(|told| told.contains(remedy)), "{message}");
        }
        assert_eq!(tls_remedy("connection reset"), None);
    }
}
