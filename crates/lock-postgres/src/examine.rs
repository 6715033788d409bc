//! What operators should know of a database.

use lock_core::examine::Check;
use lock_core::{BackendError, Effect, Operation};
use tokio_postgres::{Client, Row};

use crate::PostgresConfig;
use crate::blocking::bridge;
use crate::connect::Connector;
use crate::error;

/// The oldest version that the tests run on.
const OLDEST: i32 = 150_000;
/// A transaction that is open for longer delays the removal of old rows. In seconds.
const LONG: f64 = 300.0;
/// How far the server's clock may be off. In seconds.
const CLOCK: f64 = 1.0;

/// The last column: who asks, if the server hides from them what other roles do.
const QUESTIONS: &str = "SELECT current_setting('server_version'), current_setting('server_version_num')::int, \
     current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_standby_names'), \
     (SELECT count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) FROM pg_stat_replication), \
     (SELECT count(*) FROM pg_stat_replication), extract(epoch FROM clock_timestamp())::float8, \
     coalesce((SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_stat_activity \
       WHERE datname = current_database() AND pid <> pg_backend_pid()), 0)::float8, \
     current_setting('idle_in_transaction_session_timeout'), \
     CASE WHEN NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN quote_ident(current_user) END";

/// Connects, and asks.
pub(crate) fn examine(config: &PostgresConfig) -> Result<Vec<Check>, BackendError> {
    bridge()?.block_on(ask(config)).map_err(|error| error.of_operation(Operation::Inspect))
}

async fn ask(config: &PostgresConfig) -> Result<Vec<Check>, BackendError> {
    let (client, _told) = lock_sql::connect(&Connector::new(config)).await?;
    let failed = |error| error::of(error, Effect::None);
    let rows = client.query_typed(QUESTIONS, &[]).await.map_err(failed)?;
    let mut checks = rows.first().map(facts).unwrap_or_default();
    checks.insert(0, Check::ok("reach", format!("connected to {}", config.address.place())));
    checks.push(rights(&client, config).await.map_err(failed)?);
    Ok(checks)
}

fn facts(row: &Row) -> Vec<Check> {
    let blind: Option<&str> = row.get(10);
    vec![
        version(row.get(0), row.get(1)),
        durability(row.get(2), row.get(3)),
        standby(row.get(4), row.get(5), row.get(6), blind),
        clock(row.get(7)),
        transactions(row.get(8), row.get(9), blind),
    ]
}

/// The server shows nothing of this to the role. It is neither well nor ill then.
fn hidden(check: &'static str, what: &str, role: &str) -> Check {
    Check::remark(check, format!("this role cannot see the {what}"))
        .with_remedy(format!("GRANT pg_read_all_stats TO {role}, or run doctor as a monitoring role"))
}

fn version(name: &str, number: i32) -> Check {
    if number < OLDEST {
        return Check::remark(
            "version",
            format!("PostgreSQL {name} is older than 15, the oldest version that is tested"),
        )
        .with_remedy("upgrade the server");
    }
    Check::ok("version", format!("PostgreSQL {name}"))
}

fn durability(fsync: &str, full_pages: &str) -> Check {
    if fsync != "on" || full_pages != "on" {
        return Check::finding(
            "durability",
            "fsync or full_page_writes is off: a crash of its machine loses locks and tokens",
        )
        .with_remedy("turn both on in postgresql.conf");
    }
    Check::ok(
        "durability",
        "each grant reaches the disk before the server confirms it, whatever the default of synchronous_commit",
    )
}

fn standby(wanted: &str, synchronous: i64, all: i64, blind: Option<&str>) -> Check {
    if all == 0 && wanted.is_empty() {
        return Check::ok("standby", "none is connected");
    }
    if synchronous > 0 {
        return Check::ok(
            "standby",
            format!("{synchronous} of {all} synchronous: if one of these is promoted, it has all locks"),
        );
    }
    if wanted.is_empty() {
        let message = "asynchronous: a fail-over may lose the latest grants, and then two clients hold one lock";
        return Check::remark("standby", message)
            .with_remedy("set synchronous_standby_names, or have resources check fencing tokens");
    }
    // How many are connected is shown to everybody.
    if let (Some(role), 1..) = (blind, all) {
        return hidden("standby", "state of the standbys", role);
    }
    Check::finding("standby", format!("no synchronous standby is connected, so nothing is granted: {wanted}"))
        .with_remedy(
            "start the standby; a change of synchronous_standby_names confirms what waits, though no standby has it",
        )
}

fn clock(server: f64) -> Check {
    let here = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let off = std::time::Duration::from_secs_f64(server.max(0.0)).abs_diff(here);
    if off.as_secs_f64() > CLOCK {
        return Check::remark("clock", format!("the server's clock is {:.1} s off this machine's", off.as_secs_f64()))
            .with_remedy("leases are timed by the server's clock: do not set it forward while locks are held");
    }
    Check::ok("clock", "the server's clock agrees with this machine's")
}

fn transactions(longest: f64, limit: &str, blind: Option<&str>) -> Check {
    if longest > LONG {
        let message = format!(
            "a transaction has been open for {longest:.0} s: old rows of busy locks cannot be removed, which slows them"
        );
        return Check::remark("transactions", message).with_remedy("end it; set idle_in_transaction_session_timeout");
    }
    if let Some(role) = blind {
        return hidden("transactions", "transactions of other roles", role);
    }
    let limit =
        if limit == "0" { "without a limit for idle ones".to_owned() } else { format!("idle ones end after {limit}") };
    Check::ok("transactions", format!("none has been open for long; {limit}"))
}

async fn rights(client: &Client, config: &PostgresConfig) -> Result<Check, tokio_postgres::Error> {
    let schema = &config.schema;
    let statement = format!(
        "SELECT to_regclass('{schema}.layout') IS NULL, has_database_privilege(current_database(), 'CREATE'), \
         coalesce(has_table_privilege(to_regclass('{schema}.hold'), 'SELECT'), false)"
    );
    let rows = client.query_typed(&statement, &[]).await?;
    let Some(row) = rows.first() else {
        return Ok(Check::failed("rights", "the server did not say what this role may"));
    };
    Ok(match (row.get(0), row.get(1), row.get(2)) {
        (true, false, _) => {
            Check::failed("rights", format!("the schema {schema} is missing, and this role may not create it"))
                .with_remedy("run the output of `leasehold postgres schema` as a role that may")
        }
        (true, true, _) => Check::ok("rights", format!("the schema {schema} is made by the first client")),
        (false, _, true) => {
            Check::remark("rights", "this role reads the tables, which hold the secrets of all lock owners")
                .with_remedy("connect as a role that may only run the functions: see `leasehold postgres schema`")
        }
        (false, _, false) => Check::ok("rights", "this role runs the functions, and reads no secrets"),
    })
}
