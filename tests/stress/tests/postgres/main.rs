//! Many processes in both facades on one PostgreSQL: a dozen on locks of all kinds while everything breaks, and a crowd on one
//! lock.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`; `LEASEHOLD_STRESS_SECONDS` makes the runs longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod crowd;
mod nemesis;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use stress::cast::{Cast, Mistake};
use stress::crew::{Crew, Post};
use stress::part::Facade;
use stress::run::{await_that, await_workers, calm_down, find_an_overlap, ground, judge, storm, undone};
use stress::storm::Nemesis as _;
use test_support::{PostgresServer, Proxy};

use crate::nemesis::{Nemesis, TROUBLES};

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(8);

/// What the processes of the storm use: locks of all kinds, or only those that are held alone.
const CREW: [Cast; 12] = {
    let (kinds, locks) = (Cast::Kinds, Cast::Locks);
    [kinds, kinds, locks, locks, kinds, kinds, locks, locks, kinds, kinds, locks, locks]
};

/// The storm and the crowd take turns: together they are too much for two cores.
static MACHINE: Mutex<()> = Mutex::new(());

/// Workers with both facades in turn, each behind a proxy if faults of the network are to be injected.
fn crew(server: &PostgresServer, casts: impl IntoIterator<Item = (Cast, Mistake)>, is_behind_proxies: bool) -> Crew {
    let facades = [Facade::Async, Facade::Blocking].into_iter().cycle();
    let post = |((cast, mistake), facade)| {
        let proxies: Vec<_> = is_behind_proxies.then(|| Proxy::start(server.port())).into_iter().collect();
        let url = server.url_at(proxies.first().map_or(server.port(), Proxy::port));
        Post { facade, url, proxies, cast, mistake }
    };
    let posts = casts.into_iter().zip(facades).map(post).collect();
    Crew::start(ground(env!("CARGO_BIN_EXE_stress-worker")), posts)
}

#[test]
fn turns_never_overlap_tokens_rise_and_nobody_starves() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut server = PostgresServer::start();
    let mut crew = crew(&server, CREW.map(|cast| (cast, Mistake::None)), true);
    await_workers(&crew);
    let seed = crew.seed();
    let mut nemesis = Nemesis::new(&mut server, &mut crew, seed);
    nemesis.rage(&TROUBLES, storm(STORM));
    println!("took effect: {:?}", nemesis.storm.fired);

    // A reader upgrades only while it is alone, which may take until the storm is over.
    await_that("everything that a worker can do was done in both facades", || undone(&crew).is_empty());
    let problems = calm_down(&mut crew, &[]);
    judge(crew, &problems);
    await_that("nothing is left", || left(&server) == 0);
}

/// How many leases and places there are that are not over: a row that is over stays until the lock is used again.
fn left(server: &PostgresServer) -> u64 {
    let count = server.psql(
        "SELECT (SELECT count(*) FROM leasehold.hold WHERE until > leasehold.clock())
              + (SELECT count(*) FROM leasehold.place WHERE until > leasehold.clock())",
    );
    count.parse().unwrap()
}

#[test]
fn a_process_that_does_not_look_whether_it_holds_is_found() {
    let server = PostgresServer::start();
    find_an_overlap(crew(&server, [(Cast::Writers, Mistake::Believes), (Cast::Writers, Mistake::None)], false));
}
