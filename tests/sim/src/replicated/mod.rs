//! A Redis with replicas and sentinels. Replication is asynchronous; a replica that has not got everything may be chosen as the
//! primary, and the old primary may go on.
//!
//! Three rules keep two clients from holding one lock; each can be turned off, to check that this is found.
//!
//! - *Dwell.* A server whose data were last verified in another incarnation grants no free lock for the longest ttl and ten
//!   seconds. It renews held locks, and a release hands a lock over only with evidence of a valid hold.
//! - *Acknowledgement.* A grant or a renewal is answered once all configured replicas have it. A lock that was handed over counts
//!   once its new holder has asked for it, and that is acknowledged.
//! - *Epochs.* A client that is told of a later primary drops its connections, and never goes back.
//!
//! What is proven free of two holders depends on how the old primary ends, see `Promise`. Not free of two holders, and found within
//! some hundred fail-overs:
//!
//! - *the dwell without acknowledgements*, if an old primary goes on;
//! - *the dwell with the acknowledgement of fewer than all replicas*, if one of them still follows the old primary;
//! - *acknowledgements without the dwell*, if a server can lose its data.
//!
//! `docs/design/0021-a-replicated-store-in-the-simulator.md` has the orders of events.

mod backend;
mod checks;
mod deed;
mod failover;
mod mischief;
mod mistake;
mod node;
mod servers;
mod topology;

use std::time::Duration;

pub use mistake::Mistake;
use node::MAX_TTL;
use servers::Replicated;

use crate::clock::Time;
use crate::diary::Diary;
use crate::env::{Env, Plan};
use crate::run::Report;
use crate::world::{Stores, World};

/// What is asked for, and how long all is well in the end: by then everybody has had a turn.
const TTLS: &[Duration] = &[Duration::from_millis(600), Duration::from_secs(2), MAX_TTL, MAX_TTL];
const HEALED_WITHIN: Duration = Duration::from_secs(300);
/// How long one fail-over is played.
const FAILOVER: Duration = Duration::from_secs(30);
/// How long hand-overs are played.
const HAND_OVERS: Duration = Duration::from_secs(15);
/// The longest time between two users' arrivals at a process: while a server dwells, they only wait.
const PACE: Duration = Duration::from_secs(6);

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one(seed, mistake, Diary::default())
}

/// The same, with all that happens in it.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one(seed, mistake, Diary::written())
}

/// Plays one fail-over while everybody wants one lock, and nothing else.
pub fn play_failover(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one_failover(seed, mistake, Diary::default())
}

/// The same, with all that happens in it.
pub fn tell_failover(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one_failover(seed, mistake, Diary::written())
}

/// Plays one fail-over while a lock is handed over all the time, and nothing else.
pub fn play_hand_overs(seed: u64, mistake: Option<Mistake>) -> Report {
    play_these_hand_overs(seed, mistake, Diary::default())
}

/// The same, with all that happens in it.
pub fn tell_hand_overs(seed: u64, mistake: Option<Mistake>) -> Report {
    play_these_hand_overs(seed, mistake, Diary::written())
}

fn play_these_hand_overs(seed: u64, mistake: Option<Mistake>, diary: Diary) -> Report {
    let mut world = begin(seed, mistake, diary, (4, 5));
    world.env.cancel(|plan| matches!(plan, Plan::Arrival(_)));
    world.crowd();
    world.run_until(Time::START + HAND_OVERS);
    Report::of(world.env, world.steps)
}

fn play_one_failover(seed: u64, mistake: Option<Mistake>, diary: Diary) -> Report {
    let mut world = begin(seed, mistake, diary, (3, 5));
    world.env.cancel(|plan| matches!(plan, Plan::Arrival(_)));
    world.compete();
    world.run_until(Time::START + FAILOVER);
    Report::of(world.env, world.steps)
}

fn play_one(seed: u64, mistake: Option<Mistake>, diary: Diary) -> Report {
    let mut world = begin(seed, mistake, diary, (2, 4));
    if world.env.dice.chance(700) {
        world.compete();
    }
    let chaos = world.env.dice.millis(10_000, 50_000);
    world.env.plan(Duration::from_millis(100), Plan::Mischief);
    world.heal_after(chaos);
    world.rest_within(HEALED_WITHIN);
    Report::of(world.env, world.steps)
}

/// Some processes, at one lock or two.
fn begin(seed: u64, mistake: Option<Mistake>, diary: Diary, processes: (usize, usize)) -> World<Replicated> {
    let names: Vec<_> = ["a", "b"].iter().filter_map(|name| name.parse().ok()).collect();
    let mut env = Env::new(seed, diary);
    let servers = Replicated::new(&mut env, mistake);
    let mut world = World::new(env, servers, names, TTLS);
    world.pace = PACE;
    if world.env.dice.chance(700) {
        world.names.truncate(1);
    }
    for _ in 0..world.env.dice.from(processes.0, processes.1) {
        Replicated::begin_process(&mut world);
    }
    world
}
