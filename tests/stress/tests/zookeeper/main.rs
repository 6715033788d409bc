//! Six processes in both facades on locks of all kinds of a ZooKeeper ensemble, while everything breaks.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`; `LEASEHOLD_STRESS_SECONDS` makes the run longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod ensemble;

use std::time::Duration;

use stress::cast::{Cast, Mistake};
use stress::crew::Crew;
use stress::nemesis::rage;
use stress::run::{await_that, await_workers, calm_down, find_an_overlap, ground, judge, machine, storm};

use crate::ensemble::Ensemble;

const WORKER: &str = env!("CARGO_BIN_EXE_stress-worker");

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(12);

#[test]
fn turns_never_overlap_tokens_rise_and_no_update_is_lost() {
    let _machine = machine();
    let casts = [Cast::Kinds, Cast::Kinds, Cast::Locks, Cast::Locks, Cast::Kinds, Cast::Locks];
    let mut ensemble = Ensemble::start(3);
    let posts = casts.map(|cast| ensemble.post(cast, Mistake::None)).into();
    let mut crew = Crew::start(ground(WORKER), posts);
    await_workers(&crew);
    rage(&mut ensemble, &mut crew, storm(STORM));
    let problems = calm_down(&mut crew, &[]);
    judge(crew, &problems);
    await_that("nothing is left", || ensemble.is_unused());
}

#[test]
fn a_process_that_does_not_look_whether_it_holds_is_found() {
    let _machine = machine();
    // Shorter than it is stopped for.
    let mut ensemble = Ensemble::start(1);
    let posts = [Mistake::Believes, Mistake::None].map(|mistake| ensemble.post(Cast::Writers, mistake)).into();
    find_an_overlap(Crew::start(ground(WORKER), posts));
}
