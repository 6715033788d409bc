//! The tables and procedures in the database: made by the first client that may, and checked by each.

use lock_core::{BackendError, Effect, ErrorKind, Invalid};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::MysqlConfig;
use crate::error::{self, failed};

/// The layout that this client uses.
const LAYOUT: i32 = 1;
const SCRIPT: &str = include_str!("schema.sql");
/// What ends a statement of the script.
const END: &str = " //\n";
/// Who makes the tables holds this lock of the server, because statements that create commit at once. Waits for others that do, in seconds.
const NAME_OF_MAKING: &str = "CONCAT('leasehold_', LEFT(SHA2(DATABASE(), 256), 16))";
/// Calls a procedure of this layout, for nothing.
const NEWEST: &str = "CALL leasehold_load_all_1('[]')";
/// The procedures that lockers call.
const PROCEDURES: [&str; 11] = [
    "claim_1",
    "release_1",
    "renew_1",
    "load_1",
    "load_all_1",
    "commit_1",
    "make_1",
    "show_1",
    "list_1",
    "load_latch_1",
    "commit_latch_1",
];
/// Otherwise a MariaDB makes the account that a grant names, without a password. To others, this is a comment.
const ONLY_ACCOUNTS_THAT_EXIST: &str =
    "/*M! SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_AUTO_CREATE_USER') */;\n";
/// The procedures that fence transactions.
const FENCES: [&str; 2] = ["fence", "fence_1"];

/// The SQL that makes the tables and procedures in the current database, and grants rights to two accounts, for databases in which clients may not
/// create them. The accounts, such as `'locks'@'%'`, must exist.
///
/// - The owner runs this with the client `mysql` or `mariadb`, and everything runs with the owner's rights.
/// - `locker` acquires, renews and releases locks. Clients connect as this account.
/// - `fencer` may fence its transactions, and nothing else.
///
/// # Errors
/// `Invalid` for an account that is not written as `'USER'@'HOST'`.
pub fn setup(locker: &str, fencer: &str) -> Result<String, Invalid> {
    let (locker, fencer) = (account(locker)?, account(fencer)?);
    let mut sql = format!("DO GET_LOCK({NAME_OF_MAKING}, 60);\n{SCRIPT}");
    sql.push_str(ONLY_ACCOUNTS_THAT_EXIST);
    for procedure in PROCEDURES {
        sql.push_str(&format!("GRANT EXECUTE ON PROCEDURE leasehold_{procedure} TO {locker};\n"));
    }
    for (account, procedure) in [&locker, &fencer].into_iter().flat_map(|account| FENCES.map(|fence| (account, fence)))
    {
        sql.push_str(&format!("GRANT EXECUTE ON PROCEDURE leasehold_{procedure} TO {account};\n"));
    }
    sql.push_str(&format!("GRANT SELECT ON leasehold_layout TO {locker};\n"));
    Ok(sql)
}

/// An account, as a statement names it: `USER`, `USER@HOST` or `'USER'@'HOST'`.
fn account(text: &str) -> Result<String, Invalid> {
    let (user, host) = text.split_once('@').unwrap_or((text, "%"));
    let [user, host] =
        [user, host].map(|part| part.strip_prefix('\'').and_then(|part| part.strip_suffix('\'')).unwrap_or(part));
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['\\', '\'', '"', '`', ' ', '\0', '\n']);
    if !is_plain(user) || !is_plain(host) {
        let remedy = "write USER@HOST, such as locks@%";
        return Err(Invalid::new("account", text, "it is not an account", remedy));
    }
    Ok(format!("'{user}'@'{host}'"))
}

/// Makes the tables if they are missing. Refuses a layout that this client does not know.
pub(crate) async fn prepare(connection: &mut Conn, config: &MysqlConfig) -> Result<(), BackendError> {
    if !is_there(connection).await? {
        make(connection, config).await?;
    }
    check(connection).await
}

async fn make(connection: &mut Conn, config: &MysqlConfig) -> Result<(), BackendError> {
    let is_ours: Option<Option<bool>> =
        connection.query_first(format!("SELECT GET_LOCK({NAME_OF_MAKING}, 4)")).await.map_err(failed)?;
    if is_ours.flatten() != Some(true) {
        return Err(error::new(ErrorKind::Unavailable, Effect::None, "another client makes the tables"));
    }
    let made = run_script(connection, config).await;
    let told = connection.query_drop(format!("SELECT RELEASE_LOCK({NAME_OF_MAKING})")).await.map_err(failed);
    made.and(told)
}

async fn run_script(connection: &mut Conn, config: &MysqlConfig) -> Result<(), BackendError> {
    if is_there(connection).await? {
        return Ok(());
    }
    for statement in statements() {
        // From an attempt that ended half-way.
        if let Some(procedure) = made_procedure(statement) {
            let drop = format!("DROP PROCEDURE IF EXISTS {procedure}");
            connection.query_drop(drop).await.map_err(|failure| refused(failure, config))?;
        }
        connection.query_drop(statement).await.map_err(|failure| refused(failure, config))?;
    }
    Ok(())
}

/// The statements of the script, without what only the client program understands.
fn statements() -> impl Iterator<Item = &'static str> {
    let script = SCRIPT.lines().next().map_or(SCRIPT, |first| &SCRIPT[first.len()..]);
    script.split(END).map(str::trim).filter(|statement| !statement.is_empty() && !statement.starts_with("DELIMITER"))
}

/// The procedure that a statement makes.
fn made_procedure(statement: &str) -> Option<&str> {
    let (_, made) = statement.split_once("CREATE PROCEDURE ")?;
    made.split_once('(').map(|(name, _)| name)
}

fn refused(failure: mysql_async::Error, config: &MysqlConfig) -> BackendError {
    let error = failed(failure);
    if error.kind() != ErrorKind::Denied {
        return error;
    }
    let database = config.address.database();
    let message = format!("the tables are missing in {database}, and this account may not make them: {error}");
    error::new(ErrorKind::Denied, Effect::None, message)
        .with_source(error)
        .with_remedy("run the output of `leasehold mysql schema` as an account that may")
}

async fn is_there(connection: &mut Conn) -> Result<bool, BackendError> {
    match connection.query_first("SELECT version FROM leasehold_layout").await {
        Ok(version) => Ok(Option::<i32>::is_some(&version)),
        Err(failure) if error::is_without_tables(&failure) => Ok(false),
        Err(failure) => Err(failed(failure)),
    }
}

/// Whether the procedures of this layout are there: a dump may be without them.
async fn check_procedures(connection: &mut Conn) -> Result<(), BackendError> {
    match connection.query_drop(NEWEST).await {
        Err(failure) if error::is_without_tables(&failure) => {
            let message = "the tables are there, and their procedures are not";
            Err(error::new(ErrorKind::Config, Effect::None, message).with_source(failure).with_remedy(
                "restore dumps with --routines, or run the CREATE PROCEDURE statements of `leasehold mysql schema` as the owner",
            ))
        }
        answer => answer.map_err(failed),
    }
}

async fn check(connection: &mut Conn) -> Result<(), BackendError> {
    let layout = connection.query_first("SELECT version, oldest FROM leasehold_layout").await.map_err(failed)?;
    let refuse =
        |message: String, remedy: &str| Err(error::new(ErrorKind::Config, Effect::None, message).with_remedy(remedy));
    let (version, oldest): (i32, i32) = layout.unwrap_or_default();
    if version < LAYOUT {
        let message = format!("the tables have layout {version}, and this client needs {LAYOUT}");
        return refuse(message, "run the output of `leasehold mysql schema` of this version");
    }
    if LAYOUT < oldest {
        let message =
            format!("the tables have layout {version}, for clients of layout {oldest} or later; this one has {LAYOUT}");
        return refuse(message, "update this program");
    }
    check_procedures(connection).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_taken_apart() {
        let all: Vec<_> = statements().collect();
        assert!(all.iter().all(|statement| !statement.contains("//") && !statement.contains("DELIMITER")), "{all:#?}");
        assert!(all.len() > 20, "{}", all.len());
    }

    #[test]
    fn accounts_are_quoted() {
        assert_eq!(account("locks").unwrap(), "'locks'@'%'");
        assert_eq!(account("'locks'@'10.0.0.%'").unwrap(), "'locks'@'10.0.0.%'");
        assert!(account("").is_err() && account("a\\'@b").is_err());
    }
}
