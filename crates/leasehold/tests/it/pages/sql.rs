//! The statements of the page about fencing. Those that SQLite understands as well are run there and refuse a late writer. The others are
//! parsed as MySQL has them. Those of PostgreSQL alone run there.

use std::error::Error;

use rusqlite::{Connection, params_from_iter};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use test_support::PostgresServer;
use test_support::pages::blocks_in;

/// Runs a statement with this token, and says how many rows it changed.
fn run(db: &Connection, statement: &str, token: i64) -> Result<usize, rusqlite::Error> {
    let raises = statement.starts_with("UPDATE account SET fence");
    let mut prepared = db.prepare(statement)?;
    let values = match (raises, prepared.parameter_count()) {
        (true, 2) => vec![token, 1],                               // of an account: numbered
        (true, _) => vec![token, 1, token],                        // the same, without numbers
        (false, 2) => vec![7, token],                              // of a table of fences: the resource first
        (false, count) => [50, token, 1, token][..count].to_vec(), // of an account: its balance first
    };
    prepared.execute(params_from_iter(values))
}

fn statements_in(language: &str) -> Vec<String> {
    let code: String = blocks_in(language).into_iter().map(|block| block.code).collect();
    let lines: Vec<_> = code.lines().filter_map(|line| line.split("--").next()).collect();
    let statements = lines.join("\n");
    statements.split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_statements_of_the_pages_refuse_a_late_writer_or_are_those_of_mysql() -> Result<(), Box<dyn Error>> {
    let db = Connection::open_in_memory()?;
    db.execute_batch("CREATE TABLE account (id INTEGER, balance INTEGER); INSERT INTO account VALUES (1, 0)")?;
    let (mut refused, mut parsed) = (0, 0);
    for statement in statements_in("sql") {
        if db.prepare(&statement).is_err() {
            Parser::parse_sql(&MySqlDialect {}, &statement).map_err(|error| format!("{statement}: {error}"))?;
            parsed += 1;
        } else if statement.starts_with("ALTER") || statement.starts_with("CREATE") {
            db.execute_batch(&statement)?;
        } else {
            db.execute_batch("UPDATE account SET fence = 0")?;
            let changed = [2, 2, 1, 3].map(|token| run(&db, &statement, token));
            assert_eq!(changed.into_iter().collect::<Result<Vec<_>, _>>()?, [1, 1, 0, 1], "{statement}");
            refused += 1;
        }
    }
    assert_eq!((refused, parsed), (5, 3));
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
