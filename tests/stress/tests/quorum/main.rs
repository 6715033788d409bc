//! Five processes in both facades on two locks of a quorum of five servers, while everything breaks.
//!
//! Memories are lost only while at most a minority does not vote: that is what the quorum tolerates. What it does
//! when a majority forgets at once is in `majority`.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`; `LEASEHOLD_STRESS_SECONDS` makes the run longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod majority;
mod nemesis;
mod nodes;

use std::time::Duration;

use stress::crew::Crew;
use stress::part::Facade;
use stress::run::{await_workers, calm_down, ground, judge, storm};

use crate::nemesis::Nemesis;
use crate::nodes::Nodes;

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(8);

/// The facade of each worker, and what is special about its connections.
const CREW: [(Facade, &str); 5] = [
    (Facade::Async, ""),
    (Facade::Blocking, ""),
    (Facade::Async, ""),
    (Facade::Blocking, ""),
    (Facade::Async, "?protocol=resp2"),
];

#[test]
fn turns_never_overlap_tokens_rise_and_no_update_is_lost() {
    let ground = ground(env!("CARGO_BIN_EXE_stress-worker"));
    let (storm, seed) = (storm(STORM), ground.seed);
    let mut nodes = Nodes::start();
    let mut crew = Crew::start(ground, CREW.into_iter().map(|(facade, query)| nodes.post(facade, query)).collect());
    await_workers(&crew);

    let mut nemesis = Nemesis::new(&mut nodes, &mut crew, seed);
    nemesis.rage_until_late(storm);
    println!("took effect: {:?}", nemesis.storm.fired);
    println!("losses of a node: {}", nemesis.losses);

    nodes.await_votes();
    // A quorum has no queue, so all seats get a turn only if locks are free at times.
    crew.ease();
    let problems = calm_down(&mut crew, &[]);
    judge(crew, &problems);
    nodes.nothing_is_left();
}
