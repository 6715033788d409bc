//! `cargo xtask chaos`: many processes on one Redis, on a quorum of five, on one PostgreSQL, on one MariaDB, and on a ZooKeeper ensemble, under constant failures
//! for a long time; many readers, writers and holders of permits; and a crowd on one lock of PostgreSQL, and of MariaDB.

use anyhow::Result;

use crate::plan::Plan;
use crate::{matrix, services, step};

/// How long each run of overlapping readers or writers lasts.
const CROWD: u64 = 60;

/// Plays the matrix, or all faults together.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [matrix, record, rest @ ..] if matrix == "--matrix" && record == "--record" => {
            matrix::run_and_record(&Plan::of(rest)?)
        }
        [matrix, rest @ ..] if matrix == "--matrix" => matrix::run(&Plan::of(rest)?),
        _ => storms(&Plan::of(arguments)?),
    }
}

/// Injects faults for this many minutes: a fifth of them on one Redis, on a quorum, on PostgreSQL, on MariaDB, and on a ZooKeeper ensemble; at the two databases,
/// the crowd has half of it. Readers and writers overlap for a minute.
fn storms(plan: &Plan) -> Result<()> {
    services::for_chaos()?;
    let storm = plan.minutes * 12;
    let storms =
        [("it", storm), ("quorum", storm), ("postgres", storm / 2), ("mysql", storm / 2), ("zookeeper", storm)];
    for (test, seconds) in [("crowds", CROWD)].into_iter().chain(storms) {
        let mut command =
            step::command(&["test", "--package", "stress", "--test", test, "--", "--nocapture", "--include-ignored"]);
        plan.tell(&mut command, seconds);
        step::run(command)?;
    }
    Ok(())
}
