//! How fast both are.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use test_support::PostgresServer;

use crate::beside::runs::{Ground, SPAN};
use crate::beside::scenario::SCENARIOS;
use crate::beside::table::{Row, table};

/// How often each is measured.
const ROUNDS: usize = 7;
const TTL: Duration = Duration::from_secs(10);

/// Measures all, and returns the table.
pub(crate) fn all() -> Result<String> {
    let server = PostgresServer::start();
    let ground = Ground::at(server.url(), TTL)?;
    let version = server.psql("SHOW server_version");
    // A busy machine, above all a busy disk, slows down what writes to it.
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    let rows = SCENARIOS.iter().map(|scenario| scenario.rows(ROUNDS, |subject| ground.run(scenario.kind, subject)));
    let rows: Vec<Vec<Row>> = rows.collect::<Result<_>>()?;
    let method = format!(
        "PostgreSQL {version}, fsync on, loopback, load {load} before; {SPAN:?} in each of {ROUNDS} rounds; medians."
    );
    Ok(format!("{method}\n\n{}", table("advisory lock", rows.iter().flatten())))
}
