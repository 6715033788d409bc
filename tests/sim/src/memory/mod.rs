//! The reference store of `lock-memory`, as if it were behind a network: readers share its locks, it gives permits, keeps
//! locks and replaces leases.
//!
//! The store itself never fails and forgets nothing. What goes wrong is between it and the processes, and in them.

mod asked;
mod backend;
mod invariants;
mod mistake;
mod store;
mod stores;
mod twin;

use std::time::Duration;

pub use mistake::Mistake;
use stores::InMemory;

use crate::diary::Diary;
use crate::env::Env;
use crate::run::Report;
use crate::world::World;

/// How long everybody may take to have had a turn once all is well: what the dead left ends after the longest ttl, or after
/// the longest time for which a lock is kept, and hand-overs to them after a place each.
const HEALED_WITHIN: Duration = Duration::from_secs(400);
/// What is asked for at first. A replacement may be for ten times as long.
const TTLS: [Duration; 4] =
    [Duration::from_millis(600), Duration::from_secs(3), Duration::from_secs(3), Duration::from_secs(12)];

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    run(seed, mistake, Diary::default())
}

/// The same, with all that happens in it.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    run(seed, mistake, Diary::written())
}

fn run(seed: u64, mistake: Option<Mistake>, diary: Diary) -> Report {
    let names: Vec<_> = ["a", "b"].iter().filter_map(|name| name.parse().ok()).collect();
    let mut env = Env::new(seed, diary);
    let stores = InMemory::new(&mut env, names.len(), mistake);
    let mut world = World::new(env, stores, names, &TTLS);
    world.populate();
    world.go_through_chaos();
    world.rest_within(HEALED_WITHIN);
    world.check_quiet();
    Report::of(world.env, world.steps)
}
