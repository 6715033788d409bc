//! One run: some time in which everything goes wrong, some in which all is well, and then quiet.

use std::time::Duration;

use lock_core::LockName;

use crate::Mistake;
use crate::clock::Time;
use crate::env::Plan;
use crate::fault::Tally;
use crate::invariants::Broken;
use crate::world::World;

/// How long everybody may take to have had a turn once all is well: what the dead left ends after the longest ttl, and
/// hand-overs to them after a place each.
const HEALED_WITHIN: Duration = Duration::from_secs(180);
/// How long anything may stay at the store that nobody holds: the longest ttl, and a place.
const QUIET: Duration = Duration::from_secs(60);

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// The rule that was broken, if one was.
    pub broken: Option<Broken>,
    /// How often each fault fired.
    pub tally: Tally,
    /// A digest of everything that happened. The same seed gives the same one.
    pub digest: u64,
    /// How many steps it had.
    pub steps: u64,
    /// The last things that happened.
    pub diary: Vec<String>,
}

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    let names = ["a", "b"].iter().filter_map(|name| name.parse::<LockName>().ok()).collect();
    let mut world = World::new(seed, names, mistake);
    let chaos = world.env.dice.millis(5000, 40_000);
    world.env.plan(Duration::from_millis(100), Plan::Mischief);
    world.run_until(Time::START + chaos);
    world.heal();
    world.run_until(world.env.now + HEALED_WITHIN);
    world.check_rest();
    world.run_until(world.env.now + QUIET);
    world.check_quiet();
    let (env, steps) = (world.env, world.steps);
    let (broken, digest) = (env.watch.broken().cloned(), env.diary.digest());
    Report { broken, tally: env.tally, digest, steps, diary: env.diary.into_lines() }
}
