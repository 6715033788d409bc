//! The limit of a semaphore is changed again and again, while its holders are killed.

use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use stress::cast::{Cast, POOL, TTL, limit};
use stress::check::{Change, Rules, exclusion};
use stress::history::now;
use stress::hold::Hold;
use stress::problem::refusals;
use stress::run::{await_workers, judge, storm};
use stress::turn::Turn;

use crate::{file_in, redis, sound};

/// For how long, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(6);
/// How much longer it may take until the first slot of a raised limit is taken, on a busy machine.
const RAISED_WITHIN: Duration = Duration::from_secs(30);
/// In turn: raised and lowered, and never below what one seat wants.
const LIMITS: [u32; 4] = [5, 2, 4, 3];

/// Once the store has answered, nobody gets a permit beyond the new limit, whatever holders have kept.
fn limits_change(url: &str) {
    let mut crew = sound(url, &[Cast::Divers; 3]);
    await_workers(&crew);
    let semaphore = leasehold::blocking::connect(url).unwrap().semaphore(POOL, limit(POOL));
    let (mut rng, mut changes) = (Rng::with_seed(crew.seed()), Vec::new());
    let end = Instant::now() + storm(STORM);
    while Instant::now() < end || !crew.turns().iter().any(is_above) {
        assert!(Instant::now() < end + RAISED_WITHIN, "nobody had a slot of a raised limit");
        let (limit, sent) = (LIMITS[changes.len() % LIMITS.len()], now());
        semaphore.set_limit(limit).unwrap();
        changes.push(Change { lock: POOL, limit, sent, answered: now() });
        thread::sleep(Duration::from_millis(rng.u64(0..200)));
        crew.replace(rng.usize(..crew.workers.len()));
        thread::sleep(Duration::from_millis(rng.u64(0..200)));
    }
    let mut problems = crew.end();
    let turns = crew.turns();
    println!("turns: {}, changes: {}", turns.len(), changes.len());
    problems.extend(crew.histories().iter().flat_map(|(name, history)| refusals(name, history)));
    problems.extend(exclusion(turns, Rules { losses: &[], changes: &changes, ttl: TTL }));
    judge(crew, &problems);
}

/// Whether the turn has a slot that only a raised limit has.
fn is_above(turn: &Turn) -> bool {
    matches!(&turn.hold, Hold::Permits(slots) if slots.iter().any(|(slot, _)| *slot >= limit(POOL)))
}

#[test]
fn a_limit_is_never_exceeded_while_it_changes_and_holders_are_killed() {
    let server = redis();
    limits_change(&server.url());
}

#[test]
fn a_limit_is_never_exceeded_while_it_changes_and_holders_are_killed_in_a_file() {
    let directory = test_support::temp_dir();
    limits_change(&file_in(directory.path()));
}
