//! A checker that is not ours reads what a run has recorded: Porcupine, with the models in `tests/porcupine`. It confirms a storm on a
//! sound Redis, and refuses runs on a Redis that forgets its leases.
//!
//! `cargo xtask porcupine` compiles it and runs these tests. The seed is printed, and read from `LEASEHOLD_SEED`;
//! `LEASEHOLD_STRESS_SECONDS` makes the storm longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod sound;

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use stress::cast::{Cast, Mistake, TTL};
use stress::check::{Rules, exclusion};
use stress::crew::{Crew, Post};
use stress::nemesis::rage;
use stress::operations;
use stress::part::Facade;
use stress::problem::Problem;
use stress::register::lost_updates;
use stress::run::{await_that, await_workers, calm_down, ground, judge, machine, storm};
use test_support::bounds::Finish as _;
use test_support::{Proxy, RedisOptions, RedisServer};

use crate::sound::Sound;

/// The checker, which `cargo xtask porcupine` compiles.
const CHECKER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/../servers/porcupine/checker");

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(8);

/// How long a store remembers that forgets.
const FORGETS_AFTER: Duration = Duration::from_millis(20);

const CREW: [Facade; 4] = [Facade::Async, Facade::Blocking, Facade::Async, Facade::Blocking];

/// What the checker says.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Confirmed,
    Refused,
}

/// What it says of the locks of a run, and of the register. The file of the last run stays, for other checkers.
fn verdicts(crew: &Crew, run: &str) -> [Verdict; 2] {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(run).with_extension("jsonl");
    let count = operations::write(&crew.histories(), &file).unwrap();
    println!("{}: {count} operations", file.display());
    ["lock", "register"].map(|model| verdict(model, &file))
}

fn verdict(model: &str, file: &Path) -> Verdict {
    assert!(Path::new(CHECKER).exists(), "there is no checker; get it with: cargo xtask porcupine");
    let output = Command::new(CHECKER).arg(model).arg(file).finish();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    print!("{said}");
    match output.status.code() {
        Some(0) => Verdict::Confirmed,
        Some(1) => Verdict::Refused,
        _ => panic!("Porcupine did not decide: {said}"),
    }
}

#[test]
#[ignore = "it needs Go and Porcupine, which is downloaded; `cargo xtask porcupine` runs it"]
fn porcupine_confirms_a_storm_on_a_sound_store() {
    let (_alone, ground) = (machine(), ground(env!("CARGO_BIN_EXE_stress-worker")));
    let server = RedisServer::start_with(RedisOptions::default().append_only());
    let posts = CREW.map(|facade| {
        let proxy = Proxy::start(server.port());
        let through = post(facade, server.url_at(proxy.port()), Mistake::None);
        Post { proxies: vec![proxy], ..through }
    });
    let mut crew = Crew::start(ground, posts.into());
    await_workers(&crew);
    let mut store = Sound(server);
    rage(&mut store, &mut crew, storm(STORM));
    let problems = calm_down(&mut crew, &[]);
    assert_eq!(verdicts(&crew, "sound"), [Verdict::Confirmed, Verdict::Confirmed]);
    judge(crew, &problems);
}

/// Two hold a lock at once. The register refuses those who write too late, so it is right even then.
#[test]
#[ignore = "it needs Go and Porcupine, which is downloaded; `cargo xtask porcupine` runs it"]
fn porcupine_refuses_the_locks_of_a_store_that_forgets() {
    let _alone = machine();
    let crew =
        forgotten(Mistake::None, "two holders and a late write", |crew| overlaps(crew) && crew.register.refused() > 0);
    assert_eq!(verdicts(&crew, "forgets"), [Verdict::Refused, Verdict::Confirmed]);
    judge(crew, &[]);
}

/// The same without the check of tokens.
#[test]
#[ignore = "it needs Go and Porcupine, which is downloaded; `cargo xtask porcupine` runs it"]
fn porcupine_refuses_a_register_that_takes_late_writes() {
    let _alone = machine();
    let crew = forgotten(Mistake::Unfenced, "a lost update", |crew| {
        overlaps(crew) && !lost_updates(&crew.register.entries()).is_empty()
    });
    assert_eq!(verdicts(&crew, "unfenced"), [Verdict::Refused, Verdict::Refused]);
    judge(crew, &[]);
}

/// The end of a run in which a Redis forgot everything again and again, until our own checks found this.
fn forgotten(mistake: Mistake, what: &str, is_found: fn(&Crew) -> bool) -> Crew {
    let server = RedisServer::start();
    let posts = CREW.map(|facade| post(facade, server.url(), mistake));
    let mut crew = Crew::start(ground(env!("CARGO_BIN_EXE_stress-worker")), posts.into());
    await_that(what, || {
        server.command::<()>(&["FLUSHALL"]);
        thread::sleep(FORGETS_AFTER);
        is_found(&crew)
    });
    crew.end();
    crew
}

fn post(facade: Facade, url: String, mistake: Mistake) -> Post {
    Post { facade, url, proxies: Vec::new(), cast: Cast::Locks, mistake }
}

fn overlaps(crew: &Crew) -> bool {
    let problems = exclusion(crew.turns(), Rules { losses: &[], changes: &[], ttl: TTL });
    problems.iter().any(|problem| matches!(problem, Problem::Overlap(..)))
}
