//! The statements of the page about fencing refuse a late writer: on PostgreSQL, on MariaDB, and where SQLite understands them, there too.
//! Those of PostgreSQL alone run there.

use std::error::Error;

use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use postgres::NoTls;
use postgres::types::ToSql;
use rusqlite::{Connection, params_from_iter};
use test_support::pages::blocks_in;
use test_support::{MysqlServer, PostgresServer};

/// The tokens of writers, one after the other: the third comes too late.
const TOKENS: [i64; 4] = [2, 2, 1, 3];
/// How many rows each of them changes.
const CHANGED: [u64; 4] = [1, 1, 0, 1];

/// What a statement takes: the token, and what else the page names, in this order.
fn values(statement: &str, token: i64) -> Vec<i64> {
    let [balance, id] = [50, 1];
    match (statement.starts_with("UPDATE account SET fence"), statement.contains('?')) {
        (true, true) => vec![token, id, token],
        (true, false) => vec![token, id],
        (false, true) => vec![balance, token, id, token],
        (false, false) => vec![balance, token, id],
    }
}

fn statements_in(language: &str) -> Vec<String> {
    let code: String = blocks_in(language).into_iter().map(|block| block.code).collect();
    let lines: Vec<_> = code.lines().filter_map(|line| line.split("--").next()).collect();
    let statements = lines.join("\n");
    statements.split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Those with which a writer raises the fence of a row, or writes to it.
fn updates() -> impl Iterator<Item = String> {
    statements_in("sql").into_iter().filter(|statement| statement.starts_with("UPDATE"))
}

/// The only one that begins like this.
fn one(begins: &str) -> String {
    let mut found = statements_in("sql").into_iter().filter(|statement| statement.starts_with(begins));
    let (Some(statement), None) = (found.next(), found.next()) else { panic!("{begins}: not one statement") };
    statement
}

const ACCOUNT: [&str; 2] = ["CREATE TABLE account (id BIGINT, balance BIGINT)", "INSERT INTO account VALUES (1, 0)"];
const RESET: &str = "UPDATE account SET fence = 0";
const RAISE: &str = "INSERT INTO leasehold_fence (resource, token) VALUES ($1, $2)";
const RAISE_OF_MYSQL: &str = "INSERT INTO leasehold_fence (resource, token) VALUES (?, ?)";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS leasehold_fence (resource";
const TABLE_OF_MYSQL: &str = "CREATE TABLE IF NOT EXISTS leasehold_fence\n";

#[test]
fn a_late_writer_is_refused_on_sqlite() -> Result<(), Box<dyn Error>> {
    let db = Connection::open_in_memory()?;
    for statement in ACCOUNT.map(str::to_owned).into_iter().chain([one("ALTER"), one(TABLE)]) {
        db.execute_batch(&statement)?;
    }
    for statement in updates() {
        db.execute_batch(RESET)?;
        for (token, rows) in TOKENS.into_iter().zip(CHANGED) {
            let changed = db.execute(&statement, params_from_iter(values(&statement, token)))?;
            assert_eq!(u64::try_from(changed)?, rows, "{statement}: {token}");
        }
    }
    for (token, rows) in TOKENS.into_iter().zip(CHANGED) {
        assert_eq!(u64::try_from(db.execute(&one(RAISE), ("invoice:42", token))?)?, rows, "{token}");
    }
    Ok(())
}

#[test]
fn a_late_writer_is_refused_on_postgresql() -> Result<(), Box<dyn Error>> {
    let server = PostgresServer::start();
    let mut db = postgres::Client::connect(&server.url(), NoTls)?;
    for statement in ACCOUNT.map(str::to_owned).into_iter().chain([one("ALTER"), one(TABLE)]) {
        db.batch_execute(&statement)?;
    }
    for statement in updates().filter(|statement| statement.contains('$')) {
        db.batch_execute(RESET)?;
        for (token, rows) in TOKENS.into_iter().zip(CHANGED) {
            let values = values(&statement, token);
            let values: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
            assert_eq!(db.execute(&statement, &values)?, rows, "{statement}: {token}");
        }
    }
    for (token, rows) in TOKENS.into_iter().zip(CHANGED) {
        assert_eq!(db.execute(&one(RAISE), &[&"invoice:42", &token])?, rows, "{token}");
    }
    Ok(())
}

#[test]
fn a_late_writer_is_refused_on_mariadb() -> Result<(), Box<dyn Error>> {
    let server = MysqlServer::start();
    let options = OptsBuilder::from_opts(Opts::from_url(&server.url())?);
    let mut db = Conn::new(options.additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS))?;
    for statement in ACCOUNT.map(str::to_owned).into_iter().chain([one("ALTER"), one(TABLE_OF_MYSQL)]) {
        db.query_drop(statement)?;
    }
    for statement in updates().filter(|statement| statement.contains('?')) {
        db.query_drop(RESET)?;
        for (token, rows) in TOKENS.into_iter().zip(CHANGED) {
            db.exec_drop(&statement, values(&statement, token))?;
            assert_eq!(db.affected_rows(), rows, "{statement}: {token}");
        }
    }
    for (token, highest) in TOKENS.into_iter().zip([2, 2, 2, 3]) {
        db.exec_drop(one(RAISE_OF_MYSQL), ("invoice:42", token))?;
        let there: Option<i64> = db.exec_first(one("SELECT token FROM leasehold_fence"), ("invoice:42",))?;
        assert_eq!(there, Some(highest), "another token than one's own tells a late writer: {token}");
    }
    Ok(())
}

#[test]
fn the_statements_of_postgresql_run_there() {
    let server = PostgresServer::start();
    drop(leasehold::blocking::connect(&server.database("shop")).unwrap());
    let (roles, others): (Vec<_>, Vec<_>) =
        statements_in("pgsql").into_iter().partition(|statement| statement.starts_with("CREATE ROLE"));
    assert!(!roles.is_empty() && !others.is_empty());
    roles.iter().chain(&others).for_each(|statement| _ = server.psql_in("shop", statement));
}
