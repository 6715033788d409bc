//! Four processes in both facades on locks of all kinds in a cluster of six servers, while hash slots move from one primary to
//! another, replicas replace primaries as planned, and workers and their connections break.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`; `LEASEHOLD_STRESS_SECONDS` makes the run longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod nemesis;

use std::time::Duration;

use stress::cast::{Cast, Mistake};
use stress::crew::{Crew, Post};
use stress::part::Facade;
use stress::run::{await_that, await_workers, calm_down, ground, judge, storm};
use stress::storm::Nemesis as _;
use test_support::Cluster;

use crate::nemesis::{Nemesis, TROUBLES};

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(5);

const CREW: [Facade; 4] = [Facade::Async, Facade::Blocking, Facade::Async, Facade::Blocking];

#[test]
fn turns_never_overlap_tokens_rise_and_nobody_starves_while_hash_slots_move() {
    let ground = ground(env!("CARGO_BIN_EXE_stress-worker"));
    let (storm, seed) = (storm(STORM), ground.seed);
    let cluster = Cluster::start();
    let mut crew = Crew::start(ground, CREW.into_iter().map(|facade| post(&cluster, facade)).collect());
    await_workers(&crew);

    let mut nemesis = Nemesis::new(&cluster, &mut crew, seed);
    nemesis.rage(&TROUBLES, storm);
    println!("took effect: {:?}", nemesis.storm.fired);
    let problems = calm_down(&mut crew, &[]);
    judge(crew, &problems);
    await_that("nothing is left", || left(&cluster).is_empty());
}

fn post(cluster: &Cluster, facade: Facade) -> Post {
    let detour = cluster.detour();
    Post { facade, url: detour.url, proxies: detour.proxies, cast: Cast::Kinds, mistake: Mistake::None }
}

/// The keys but those that clients keep in each hash slot.
fn left(cluster: &Cluster) -> Vec<String> {
    let kept = [":counter", ":dwell", ":incarnation", ":max_ttl", ":tombstones"];
    let mut keys: Vec<String> =
        cluster.servers.iter().flat_map(|server| server.command::<Vec<String>>(&["KEYS", "*"])).collect();
    keys.retain(|key| !kept.iter().any(|end| key.ends_with(end)));
    keys
}
