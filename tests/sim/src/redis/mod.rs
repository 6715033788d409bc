//! One Redis with our scripts: a model of it, the backend that asks it, and what goes wrong there.
//!
//! The model follows `docs/wire.md`; a [`trace`] that is played against both it and the scripts keeps it honest.

mod backend;
mod invariants;
mod layer;
mod mischief;
mod mistake;
mod server;
mod stores;
pub mod trace;
mod words;

use std::time::Duration;

pub use mistake::Mistake;
use stores::OneRedis;

use crate::diary::Diary;
use crate::env::Env;
use crate::run::Report;
use crate::world::World;

/// How long it may take until every waiter has had a turn once all is well: what dead processes left ends after the
/// longest ttl, and each hand-over to them after a place.
const HEALED_WITHIN: Duration = Duration::from_secs(180);
/// How long anything that nobody holds may stay at the store: the longest ttl, and a place.
const QUIET: Duration = Duration::from_secs(60);
/// What is asked for.
const TTLS: [Duration; 5] = [
    Duration::from_millis(600),
    Duration::from_secs(3),
    Duration::from_secs(3),
    Duration::from_secs(12),
    Duration::from_secs(30),
];

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    run(seed, mistake, Diary::default())
}

/// The same, with a diary of all that happens.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    run(seed, mistake, Diary::written())
}

fn run(seed: u64, mistake: Option<Mistake>, diary: Diary) -> Report {
    let names = ["a", "b"].iter().filter_map(|name| name.parse().ok()).collect();
    let mut env = Env::new(seed, diary);
    let redis = OneRedis::new(&mut env, mistake);
    let mut world = World::new(env, redis, names, &TTLS);
    world.populate();
    world.go_through_chaos();
    world.rest_within(HEALED_WITHIN);
    world.run_until(world.env.now + QUIET);
    world.check_quiet();
    Report::of(world.env, world.steps)
}
