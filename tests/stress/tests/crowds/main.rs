//! Many readers, writers and holders of permits in real processes: who gets in when, what the dead leave behind, and whether
//! the checks find a worker with a mistake.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`; `LEASEHOLD_STRESS_SECONDS` makes the runs of readers and writers
//! longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod dead;
mod file;
mod limits;
mod mistakes;
mod overlapping;
mod stopped;

use std::path::Path;

use stress::cast::{Cast, Mistake};
use stress::crew::{Crew, Post};
use stress::part::Facade;
use stress::run::ground;
use stress::turn::Turn;
use test_support::RedisServer;

const FACADES: [Facade; 2] = [Facade::Async, Facade::Blocking];

/// Workers on this store without proxies, with both facades in turn.
fn crew(url: &str, casts: &[(Cast, Mistake)]) -> Crew {
    let facades = FACADES.into_iter().cycle();
    start(casts.iter().zip(facades).map(|((cast, mistake), facade)| post(url, facade, *cast, *mistake)).collect())
}

fn post(url: &str, facade: Facade, cast: Cast, mistake: Mistake) -> Post {
    Post { facade, url: url.to_owned(), proxies: Vec::new(), cast, mistake }
}

fn start(posts: Vec<Post>) -> Crew {
    Crew::start(ground(env!("CARGO_BIN_EXE_stress-worker")), posts)
}

/// Workers without a mistake.
fn sound(url: &str, casts: &[Cast]) -> Crew {
    let casts: Vec<_> = casts.iter().map(|cast| (*cast, Mistake::None)).collect();
    crew(url, &casts)
}

/// The turns of one worker.
fn turns_of(crew: &Crew, worker: usize) -> Vec<Turn> {
    stress::turn::turns(crew.workers[worker].name(), &crew.history_of(worker))
}

fn redis() -> RedisServer {
    RedisServer::start()
}

/// The URL of a new file in this directory.
fn file_in(directory: &Path) -> String {
    format!("sqlite:{}", directory.join("locks.db").display())
}
