//! One server: the backend that asks it, what goes wrong there, and what must hold. What the server does is in a model.

mod backend;
mod checks;
mod in_lease;
mod in_session;
mod invariants;
mod known;
mod lane;
mod layer;
mod leasing;
mod lines;
mod listeners;
mod mischief;
mod mistake;
mod model;
mod place;
mod replies;
mod session;
mod step;
mod stores;
mod units;
mod words;

use std::time::Duration;

pub(crate) use backend::Translator;
pub(crate) use invariants::{Tokens, together};
pub(crate) use known::{Known, LeaseId, Told, Version, whole_seconds};
pub(crate) use listeners::Listeners;
pub use mistake::Mistake;
pub(crate) use model::{Model, Order, Stored};
use stores::One;
pub(crate) use stores::any_client;
pub use units::{Inbox, Seat};
pub(crate) use units::{LIVES, Millis, SessionId, TICK, micros, millis};
pub use words::{Ask, Refused, Say, operator};
pub(crate) use words::{ConfigEpoch, Outcome, Words};

use crate::diary::Diary;
use crate::env::Env;
use crate::run::Report;
use crate::world::World;

/// How long all is well, in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// By then, everybody must have had a turn.
    pub(crate) healed_within: Duration,
    /// And this much later, nothing is stored of anybody.
    pub(crate) quiet: Duration,
}

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub(crate) fn play_one<M: Model>(seed: u64, mistake: Option<Mistake>, diary: Diary, rest: Rest) -> Report {
    let names: Vec<_> = ["a", "b"].iter().filter_map(|name| name.parse().ok()).collect();
    let mut env = Env::new(seed, diary);
    let one = One::<M>::new(&mut env, names.len(), mistake);
    let mut world = World::new(env, one, names, M::TTLS);
    world.latches = M::latches();
    world.populate();
    world.sets = world.pairs();
    world.go_through_chaos();
    world.open_latches();
    world.rest_within(rest.healed_within);
    world.run_until(world.env.now + rest.quiet);
    world.check_quiet();
    Report::of(world.env, world.steps)
}
