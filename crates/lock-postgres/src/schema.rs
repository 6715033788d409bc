//! The tables and functions in the database: made by the first client that may, and checked by each.

use lock_core::{BackendError, Effect, ErrorKind, Invalid};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::PostgresConfig;
use crate::config::{check_schema, quoted};
use crate::error;

/// The layout that this client uses.
const LAYOUT: i32 = 1;
const SCRIPT: &str = include_str!("schema.sql");
/// Held by the transaction that makes the schema, because `CREATE ... IF NOT EXISTS` may fail if two run at once. Chosen: at random.
const MAKING: i64 = 0x6c65_6173_6568_6f6c;

/// How long it waits for others that do.
const MAKING_WITHIN: &str = "4s";

/// The script that makes the tables and functions.
fn script(schema: &str) -> String {
    let schema = quoted(schema);
    SCRIPT.replace("leasehold.", &format!("{schema}.")).replace("SCHEMA leasehold", &format!("SCHEMA {schema}"))
}

/// The SQL that makes the tables and functions in a schema, and grants rights to two roles, for databases in which clients may not create a
/// schema. The roles must exist.
///
/// - The owner runs this, and owns everything.
/// - `locker` acquires, renews and releases locks. Clients connect as this role.
/// - `fencer` may fence its transactions, and nothing else.
///
/// # Errors
/// `Invalid` for a schema that needs quotes, and for a role without a name.
pub fn setup(schema: &str, locker: &str, fencer: &str) -> Result<String, Invalid> {
    check_schema(schema)?;
    let (script, locker, fencer) = (script(schema), quoted_role(locker)?, quoted_role(fencer)?);
    let schema = quoted(schema);
    Ok(format!(
        "BEGIN;\n{script}\nGRANT USAGE ON SCHEMA {schema} TO {locker}, {fencer};\nGRANT SELECT ON {schema}.layout TO {locker};\n\
         GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {locker};\n\
         GRANT EXECUTE ON FUNCTION {schema}.fence(text, bigint) TO {fencer};\nCOMMIT;\n"
    ))
}

/// A role, as a statement names it.
fn quoted_role(role: &str) -> Result<String, Invalid> {
    let problem = match role {
        "" => "it is empty",
        _ if role.contains('\0') => "it has a zero byte",
        _ => return Ok(format!("\"{}\"", role.replace('"', "\"\""))),
    };
    Err(Invalid::new("role", role, problem, "give the name of a role that exists"))
}

/// Makes the schema if it is missing. Refuses a layout that this client does not know.
pub(crate) async fn prepare(client: &mut Client, config: &PostgresConfig) -> Result<(), BackendError> {
    if is_there(client, config).await? {
        return check(client, config).await;
    }
    let failed = |error: tokio_postgres::Error| match error.code() {
        Some(code) if code.code() == "42501" => {
            let message = format!("the schema {} is missing, and this role may not create it", config.schema);
            error::new(ErrorKind::Denied, Effect::None, message)
                .with_source(error)
                .with_remedy("run the output of `leasehold postgres schema` as a role that may")
        }
        _ => error::of(error, Effect::None),
    };
    let transaction = client.transaction().await.map_err(failed)?;
    let bound = "SELECT set_config('lock_timeout', $1, true)";
    transaction.query_typed(bound, &[(&MAKING_WITHIN, Type::TEXT)]).await.map_err(failed)?;
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&MAKING, Type::INT8)]).await.map_err(failed)?;
    if !layout_exists(transaction.query_typed(IS_THERE, &[(&config.schema, Type::TEXT)]).await.map_err(failed)?) {
        transaction.batch_execute(&script(&config.schema)).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    check(client, config).await
}

/// A question to a table: `to_regclass` may answer from what this session knew before it waited for the lock.
const IS_THERE: &str =
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'layout')";

async fn is_there(client: &Client, config: &PostgresConfig) -> Result<bool, BackendError> {
    let rows = client.query_typed(IS_THERE, &[(&config.schema, Type::TEXT)]).await;
    Ok(layout_exists(rows.map_err(|error| error::of(error, Effect::None))?))
}

fn layout_exists(rows: Vec<tokio_postgres::Row>) -> bool {
    rows.first().is_some_and(|row| row.get(0))
}

async fn check(client: &Client, config: &PostgresConfig) -> Result<(), BackendError> {
    let statement = format!("SELECT version, oldest FROM {}.layout", config.quoted_schema());
    let rows = client.query_typed(&statement, &[]).await.map_err(|error| error::of(error, Effect::None))?;
    let refuse =
        |message: String, remedy: &str| Err(error::new(ErrorKind::Config, Effect::None, message).with_remedy(remedy));
    let Some(row) = rows.first() else {
        return refuse(
            format!("the table {}.layout is empty", config.schema),
            "drop the schema, or use another one by schema=NAME",
        );
    };
    let (version, oldest): (i32, i32) = (row.get(0), row.get(1));
    if version < LAYOUT {
        let message = format!("the tables have layout {version}, and this client needs {LAYOUT}");
        return refuse(message, "run the script of this version that upgrades the tables");
    }
    if LAYOUT < oldest {
        let message =
            format!("the tables have layout {version}, for clients of layout {oldest} or later; this one has {LAYOUT}");
        return refuse(message, "update this program");
    }
    Ok(())
}
