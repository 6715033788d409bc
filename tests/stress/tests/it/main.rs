//! Six processes in both faces on two locks, while everything breaks.
//!
//! The seed is printed, and taken back from `LEASEHOLD_SEED`: it fixes what is broken and in which order, and what each
//! worker wants, though not how the processes meet. `LEASEHOLD_STRESS_SECONDS` makes the run longer.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod crew;
mod nemesis;

use std::collections::BTreeMap;
use std::env;
use std::thread;
use std::time::{Duration, Instant};

use stress::check::{Calm, Problem, Rules, exclusion, refusals, starved};
use stress::history::{What, now};
use test_support::{RedisOptions, RedisServer, temp_dir};

use crate::crew::{Crew, TTL};
use crate::nemesis::Nemesis;

/// How long things are broken, unless it is said.
const STORM: Duration = Duration::from_secs(11);
/// How long nothing is broken before the end, at least ...
const CALM: Duration = Duration::from_secs(2);
/// ... and how long a waiter may then be without a turn.
const PATIENCE: Duration = Duration::from_secs(15);

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

#[test]
fn turns_never_overlap_tokens_rise_and_nobody_starves() {
    let seed = number("LEASEHOLD_SEED").unwrap_or_else(|| fastrand::u64(..));
    let storm = number("LEASEHOLD_STRESS_SECONDS").map_or(STORM, Duration::from_secs);
    println!("LEASEHOLD_SEED={seed}");
    let histories = temp_dir();
    let mut server = RedisServer::start_with(RedisOptions::default().append_only());
    let mut crew = Crew::start(&server, histories.path(), seed);
    await_turns(&crew, 0);

    let mut nemesis = Nemesis::new(&mut server, &mut crew, seed);
    nemesis.rage(storm);
    let (fired, losses) = (nemesis.fired, nemesis.losses);

    let from = now();
    thread::sleep(CALM);
    await_turns(&crew, from);
    let calm = Calm { from, until: now(), patience: PATIENCE };
    let seats = crew.seats();
    let mut problems = crew.end();

    println!("took effect: {fired:?}");
    println!("in the histories: {:?}", tally(&crew));
    let turns = crew.turns();
    problems.extend(starved(&turns, &seats, calm));
    problems.extend(crew.histories().iter().flat_map(|(name, history)| refusals(name, history)));
    problems.extend(exclusion(turns, Rules { losses: &losses, ttl: TTL }));
    if !problems.is_empty() {
        let texts: Vec<String> = problems.iter().take(20).map(Problem::to_string).collect();
        panic!("{} problems, see {:?}\n{}", problems.len(), histories.keep(), texts.join("\n"));
    }
    nothing_is_left(&server);
}

/// Waits until every seat had a turn, but no longer than the patience lasts: the checker says who had none.
fn await_turns(crew: &Crew, since: u64) {
    let deadline = Instant::now() + PATIENCE + CALM;
    loop {
        let turns = crew.turns();
        let had_one = |seat: &String| turns.iter().any(|turn| turn.from >= since && turn.who == *seat);
        if crew.seats().iter().all(had_one) || Instant::now() > deadline {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// How often each thing happened, which shows that the run was one.
fn tally(crew: &Crew) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (name, history) in crew.histories() {
        let face = name.split('-').next().unwrap().to_owned();
        for event in history {
            let what = match event.what {
                What::Has(_) => "turn".to_owned(),
                What::Waits | What::Still => continue,
                What::Ended(ending) => format!("{ending:?}"),
                What::Left(leaving) => format!("{leaving:?}"),
            };
            *counts.entry(format!("{face} {what}")).or_default() += 1;
        }
    }
    for seen in ["async Cancelled", "async TimedOut", "blocking TimedOut"] {
        assert!(counts.contains_key(seen), "nobody was {seen}: {counts:?}");
    }
    counts
}

/// Locks, queues and waiters are gone when nobody wants anything; what outlives them does so for a ttl.
fn nothing_is_left(server: &RedisServer) {
    let deadline = Instant::now() + 10 * TTL;
    loop {
        let mut keys: Vec<String> = server.command(&["KEYS", "*"]);
        keys.retain(|key| !["leasehold:counter", "leasehold:marker"].contains(&key.as_str()));
        if keys.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left at the store: {keys:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
