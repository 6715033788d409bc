//! What the server's errors mean for a request.

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use mysql_async::{DriverError, Error, ServerError};

/// The store's name in errors.
pub(crate) const BACKEND: &str = "mysql";

/// Conflicts, after which the transaction was rolled back: a deadlock, a row that has changed since it was read, or a transaction that the user of
/// a pool had left open.
const CONFLICTS: [u16; 3] = [1213, 1020, 1568];
/// The server accepts no writes.
const READ_ONLY: [u16; 5] = [1290, 1792, 1836, 3032, 3100];
/// A procedure or a table is not there.
const MISSING: [u16; 2] = [1305, 1146];

/// An error of a request whose operation its caller knows.
pub(crate) fn new(kind: ErrorKind, effect: Effect, message: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, Operation::Connect, kind, effect, message)
}

fn code(error: &Error) -> Option<u16> {
    let Error::Server(ServerError { code, .. }) = error else { return None };
    Some(*code)
}

/// Whether the transaction ended because others were in its way. Nothing happened, and it may be run again.
pub(crate) fn is_conflict(error: &Error) -> bool {
    code(error).is_some_and(|code| CONFLICTS.contains(&code))
}

/// Whether the tables or procedures are not there.
pub(crate) fn is_without_tables(error: &Error) -> bool {
    code(error).is_some_and(|code| MISSING.contains(&code))
}

/// Whether the server accepts no writes any more.
pub(crate) fn is_read_only(error: &Error) -> bool {
    code(error).is_some_and(|code| READ_ONLY.contains(&code))
}

/// Whether the server has answered, so that the connection can run the next statement.
pub(crate) fn is_answer(error: &Error) -> bool {
    code(error).is_some_and(|code| !matches!(meaning(code).0, ErrorKind::Unreachable | ErrorKind::Protocol))
}

/// The error of a statement that was sent.
pub(crate) fn of(error: Error, effect: Effect) -> BackendError {
    describe("", error, effect)
}

/// The error of a statement that has changed nothing.
pub(crate) fn failed(error: Error) -> BackendError {
    of(error, Effect::None)
}

/// A server did not accept a connection.
pub(crate) fn of_server(server: &str, error: Error) -> BackendError {
    describe(&format!("{server}: "), error, Effect::None)
}

/// The same error of the client library for threads.
#[cfg(feature = "blocking")]
pub(crate) fn of_threads(error: mysql::Error) -> Error {
    let mysql::Error::MySqlError(mysql::error::MySqlError { state, message, code }) = error else {
        return Error::Other(Box::new(error));
    };
    Error::Server(ServerError { code, message, state })
}

/// A pool of the user's gave no connection, so nothing was sent.
pub(crate) fn of_pool(failure: &dyn std::error::Error) -> BackendError {
    new(ErrorKind::Unreachable, Effect::None, format!("the pool gave no connection: {failure}"))
        .with_remedy("check that the server is running and reachable, or make the pool larger")
}

fn describe(place: &str, error: Error, effect: Effect) -> BackendError {
    let Error::Server(told) = &error else { return unanswered(place, error, effect) };
    let (kind, remedy) = meaning(told.code);
    // A server that shuts down may have done what it did not answer, and nobody knows what other errors mean.
    let is_unknown = matches!(kind, ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Protocol);
    let effect = if is_unknown { effect } else { Effect::None };
    let late = if kind == ErrorKind::Timeout { "the server did not finish in time: " } else { "" };
    let described = new(kind, effect, format!("{place}{late}{} ({})", told.message, told.code)).with_source(error);
    remedy.map_or(described.clone(), |remedy| described.with_remedy(remedy))
}

fn meaning(code: u16) -> (ErrorKind, Option<&'static str>) {
    match code {
        // MariaDB says so too to who comes without TLS, if it demands that.
        1045 | 1698 | 1251 | 2059 => (
            ErrorKind::Denied,
            Some(
                "check user and password, from where the user may connect, and whether the server demands TLS (sslmode=require)",
            ),
        ),
        3159 => (
            ErrorKind::Denied,
            Some("the server demands TLS: write sslmode=require, or name its authority by sslrootcert"),
        ),
        3118 | 3955 | 4151 => (ErrorKind::Denied, Some("unlock the account")),
        1820 | 1862 => (ErrorKind::Denied, Some("give the account a new password")),
        // The server says the same of a database that is not there.
        1044 => (ErrorKind::Denied, Some("check the name of the database, and the rights of the account on it")),
        1142 | 1227 | 1370 | 1410 => (ErrorKind::Denied, Some("grant the rights that `leasehold mysql schema` prints")),
        1449 => {
            (ErrorKind::Config, Some("the account that made the procedures is gone: make it again, with its rights"))
        }
        1226 => (
            ErrorKind::Unavailable,
            Some("raise MAX_USER_CONNECTIONS of the account: each client needs two connections or more"),
        ),
        1049 => (ErrorKind::Config, Some("create the database, or correct its name in the URL")),
        1665 => (
            ErrorKind::Config,
            Some("set binlog_format to ROW or MIXED: with STATEMENT, the server refuses these transactions"),
        ),
        code if READ_ONLY.contains(&code) => {
            (ErrorKind::Unavailable, Some("name the primary, or all servers: one of them accepts writes"))
        }
        // The connection or the statement was ended: it may have been carried out.
        1026 | 1030 | 1053 | 1077 | 1080 | 1152 | 1158..=1161 | 1180 | 1184 | 1317 | 1927 | 4031 => {
            (ErrorKind::Unreachable, None)
        }
        1969 | 3024 => (ErrorKind::Timeout, None),
        // Errors of proxies.
        2000..=2058 | 9000..=9999 => (ErrorKind::Unreachable, None),
        1205 | 1213 | 1020 | 1021 | 1040 | 1041 | 1114 | 1129 | 1203 => (ErrorKind::Unavailable, None),
        1305 | 1146 => {
            (ErrorKind::Unavailable, Some("try again: the tables may have been removed, and will be created again"))
        }
        _ => (ErrorKind::Protocol, None),
    }
}

/// Whether the server asked for an authentication plugin that this client does not have. MySQL also does so if it does not know the user.
fn is_unprovable(error: &Error) -> bool {
    use DriverError::{CleartextPluginDisabled, MysqlOldPasswordDisabled, UnknownAuthPlugin};
    matches!(error, Error::Driver(UnknownAuthPlugin { .. } | MysqlOldPasswordDisabled | CleartextPluginDisabled))
}

fn unanswered(place: &str, error: Error, effect: Effect) -> BackendError {
    let message = format!("{place}{error}");
    if is_unprovable(&error) {
        let remedy = "check user and password, and that the plugin of the account is caching_sha2_password or mysql_native_password";
        return new(ErrorKind::Denied, Effect::None, message).with_source(error).with_remedy(remedy);
    }
    if message.contains("asked for SSL") {
        let remedy = "enable TLS at the server; with sslmode=disable, everything is sent unencrypted";
        return new(ErrorKind::Config, Effect::None, message).with_source(error).with_remedy(remedy);
    }
    if message.contains("TLS") || message.contains("ertificate") || message.contains("SSL") {
        let remedy = "trust the authority of the server's certificate by sslrootcert=FILE, and name the host as the certificate does";
        return new(ErrorKind::Config, Effect::None, message).with_source(error).with_remedy(remedy);
    }
    new(ErrorKind::Unreachable, effect, message)
        .with_source(error)
        .with_remedy("check that the server is running and reachable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_carried_out_is_told_from_what_was_not() {
        for (code, kind) in [
            (1053, ErrorKind::Unreachable),
            (1927, ErrorKind::Unreachable),
            (1317, ErrorKind::Unreachable),
            (1205, ErrorKind::Unavailable),
            (1040, ErrorKind::Unavailable),
            (1045, ErrorKind::Denied),
            (1370, ErrorKind::Denied),
            (3118, ErrorKind::Denied),
            (3159, ErrorKind::Denied),
            (1049, ErrorKind::Config),
            (1665, ErrorKind::Config),
            (1305, ErrorKind::Unavailable),
            (1064, ErrorKind::Protocol),
        ] {
            assert_eq!(meaning(code).0, kind, "{code}");
        }
    }
}
