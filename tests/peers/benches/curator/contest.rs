//! How fast both are.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use test_support::{CuratorPeer, ZookeeperServer, four_letter};

use crate::beside::runs::{Ground, SPAN};
use crate::beside::scenario::{SCENARIOS, THEIRS};
use crate::beside::table::{Row, table};
use crate::theirs::{Theirs, WARM_UP};

/// How often each is measured.
const ROUNDS: usize = 3;
/// How long a session lasts without its client.
const SESSION: Duration = Duration::from_secs(10);

/// Measures all, and returns the table.
pub(crate) fn all() -> Result<String> {
    let server = ZookeeperServer::start();
    let url = format!("zookeeper://{}?tick=500ms&session={}s", server.address(), SESSION.as_secs());
    let (ground, mut theirs) = (Ground::at(url, SESSION)?, Theirs::connect(&server, SESSION));
    let before = load()?;
    let mut rows: Vec<Row> = Vec::new();
    for scenario in &SCENARIOS {
        theirs.warm_up(scenario.kind)?;
        rows.extend(scenario.rows(ROUNDS, |subject| match subject {
            THEIRS => theirs.run(scenario.kind, SPAN),
            ours => ground.run(scenario.kind, ours),
        })?);
    }
    let method = format!(
        "ZooKeeper {}, Curator {}, forceSync on, loopback, load {before} before and {} after; {SPAN:?} in each of {ROUNDS} rounds, Java \
         warmed up for {WARM_UP:?} before the rounds of each row; medians.",
        version(&server),
        CuratorPeer::version(),
        load()?
    );
    Ok(format!("{method}\n\n{}", table("Curator", rows.iter())))
}

/// A busy machine, above all a busy disk, slows down what writes to it.
fn load() -> Result<String> {
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(load.split(' ').next().unwrap_or_default().to_owned())
}

fn version(server: &ZookeeperServer) -> String {
    let told = four_letter(server.port(), "srvr");
    let version = told.lines().find_map(|line| line.strip_prefix("Zookeeper version: ")).unwrap_or_default();
    version.split(['-', ',']).next().unwrap_or_default().to_owned()
}
