//! A quorum of nodes: the real code that decides, over models of nodes that break in every way they may.
//!
//! Each seed draws its `terms`: how many nodes, which faults it has at all, how far clocks are apart.

mod course;
mod invariants;
mod list;
mod mischief;
mod mistake;
mod node;
mod nodes;
mod plot;
mod post;
mod processes;
mod redlock;
mod terms;
mod words;

use std::time::Duration;

use lock_core::LockName;

pub use mistake::Mistake;
use nodes::Nodes;
use terms::Terms;

use crate::diary::Diary;
use crate::dice::Dice;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::run::Report;
use crate::world::World;

/// How long it may take, beyond the longest lease, until every waiter has had a turn once all is well: there may be
/// many, and some hold for long.
const HEALED_WITHIN: Duration = Duration::from_secs(600);
/// How much longer than the longest lease anything that nobody holds may stay at a node.
const QUIET: Duration = Duration::from_secs(5);
/// Clocks that are this far apart are reported.
const APART: Duration = Duration::from_secs(60);

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    run(seed, mistake, Diary::default())
}

/// The same, with a diary of all that happens.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    run(seed, mistake, Diary::written())
}

/// Plays a plot: an order of events that the other seeds do not meet.
pub fn play_plot(seed: u64, mistake: Option<Mistake>) -> Report {
    run_plot(seed, mistake, Diary::default())
}

/// The same, with a diary of all that happens.
pub fn tell_plot(seed: u64, mistake: Option<Mistake>) -> Report {
    run_plot(seed, mistake, Diary::written())
}

fn run(seed: u64, mistake: Option<Mistake>, diary: Diary) -> Report {
    let terms = Terms::draw(&mut Dice::new(!seed));
    let chaos = terms.chaos;
    let mut world = populated(seed, terms, mistake, diary);
    world.env.plan(Duration::from_millis(100), Plan::Mischief);
    finish(world, chaos)
}

fn run_plot(seed: u64, mistake: Option<Mistake>, diary: Diary) -> Report {
    let (terms, script) = plot::draw(&mut Dice::new(!seed));
    let (lull, end) = (terms.lull, script.end());
    let mut world = populated(seed, terms, mistake, diary);
    world.rehearse(script);
    world.env.plan(lull, Plan::Mischief);
    finish(world, end)
}

fn populated(seed: u64, terms: Terms, mistake: Option<Mistake>, diary: Diary) -> World<Nodes> {
    let names = ["a", "b", "c"].iter().take(terms.names).filter_map(|name| name.parse::<LockName>().ok()).collect();
    let mut env = Env::new(seed, diary);
    env.note(format_args!("{terms:?}"));
    if terms.skew > APART {
        env.fired(Fault::ClocksApart);
    }
    let (ttls, pace, lull) = (terms.ttls, terms.pace, terms.lull);
    let nodes = Nodes::new(&mut env, terms, mistake);
    let mut world = World::new(env, nodes, names, ttls);
    (world.pace, world.lull) = (pace, lull);
    world.populate();
    world
}

/// After this much chaos all is well, and every user gets what it wants.
fn finish(mut world: World<Nodes>, chaos: Duration) -> Report {
    world.heal_after(chaos);
    let longest = world.stores.terms.max_ttl.get() + world.stores.set_back;
    world.rest_within(HEALED_WITHIN + longest);
    world.run_until(world.env.now + QUIET + longest);
    world.check_quiet();
    Report::of(world.env, world.steps)
}
