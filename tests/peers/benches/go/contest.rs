//! How fast both are.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use bench_measure::Subject;
use test_support::EtcdServer;

use crate::beside::runs::{Ground, SPAN};
use crate::beside::scenario::{Kind, SCENARIOS, Scenario, THEIRS};
use crate::beside::table::{Row, table};
use crate::theirs;

/// How often each is measured.
const ROUNDS: usize = 5;
const TTL: Duration = Duration::from_secs(10);
/// A long queue, which only stores with an order of their own serve without more work for each waiter.
const MANY: [Scenario; 1] = [Scenario {
    title: "64 waiters for one lock, two processes",
    kind: Kind::HandOvers { waiters: 64, processes: 2 },
    ours: &[Subject::Leasehold, Subject::Chain0],
}];

/// Measures all, and returns the table.
pub(crate) fn all() -> Result<String> {
    let server = EtcdServer::start();
    let ground = Ground::at(server.url(), TTL)?;
    let before = load()?;
    let mut rows: Vec<Row> = Vec::new();
    for scenario in SCENARIOS.iter().chain(&MANY) {
        rows.extend(scenario.rows(ROUNDS, |subject| match subject {
            THEIRS => theirs::run(&server, TTL, scenario.kind),
            ours => ground.run(scenario.kind, ours),
        })?);
    }
    let method = format!(
        "etcd {}, one server without fsync, etcd's client for Go in the version of tests/go, loopback, load {before} before and {} after; \
         {SPAN:?} in each of {ROUNDS} rounds; medians.",
        server.version(),
        load()?
    );
    Ok(format!("{method}\n\n{}", table("Go", rows.iter())))
}

/// A busy machine slows down both.
fn load() -> Result<String> {
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(load.split(' ').next().unwrap_or_default().to_owned())
}
