//! A crowd on one lock of a database: processes that join the queue and leave it all the time.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::cast::{Cast, Mistake};
use crate::crew::Crew;
use crate::fair::fewest_and_most;
use crate::history::{Ending, Leaving, What, now};
use crate::problem::Problem;
use crate::run::{await_that, await_workers, calm_down, judge, machine, storm};
use crate::sql::{SqlServer, crew};
use crate::turn::{Turn, seat_name};

/// Processes of a crowd that wait until they get their turn. They are never killed.
const GUESTS: usize = 48;
/// Processes of a crowd that give up most of their waits. Now and then one is killed, and another replaces it.
///
/// Chosen: with 64 processes, two cores have little time left in a store that wakes all waiters for each turn, or is polled by all of them.
const PASSERSBY: usize = 16;
/// How long the crowd is there, unless the environment says otherwise.
const USUAL: Duration = Duration::from_secs(15);
/// How many milliseconds pass until the next one is killed. Its turn ends with its lease, even if it begins afterwards.
const KILLED_AFTER: Range<u64> = 2_000..4_000;
/// How many turns the guest with the most must have: a difference of two is a tenth then.
const TURNS: usize = 20;

/// Guests of a crowd have equally many turns, and nobody is told of an error. `program` is the worker.
///
/// # Panics
/// If that is not so.
pub fn play_crowd<S: SqlServer>(program: &'static str) {
    let _machine = machine();
    let server = S::start();
    let casts = [vec![(Cast::Guest, Mistake::None); GUESTS], vec![(Cast::Passerby, Mistake::None); PASSERSBY]];
    let mut crew = crew(program, &server, casts.concat(), false);
    await_workers(&crew);
    let guests: Vec<_> = crew.workers[..GUESTS].iter().map(|worker| seat_name(worker.name(), 0)).collect();

    let from = now();
    let (fewest, most) = gather(&mut crew, &guests, from);
    let mut problems = calm_down(&mut crew, &[]);
    // Who gives up soon may have no turn for long.
    problems.retain(|problem| !matches!(problem, Problem::Starved(who, _) if !guests.contains(who)));
    let failures = failures(&crew, &guests);
    assert!(failures.is_empty(), "{} failures: {:#?}", failures.len(), failures.iter().take(5).collect::<Vec<_>>());
    assert!(fewest * 10 >= most * 9, "a guest had {fewest} turns, and another had {most}");
    judge(crew, &problems);
}

/// Kills those that pass by for as long as the crowd is there. Returns the fewest and the most turns of a guest meanwhile.
fn gather(crew: &mut Crew, guests: &[String], from: u64) -> (usize, usize) {
    let (mut rng, end) = (Rng::with_seed(crew.seed()), Instant::now() + storm(USUAL));
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(rng.u64(KILLED_AFTER)));
        crew.replace(rng.usize(guests.len()..crew.workers.len()));
    }
    await_that("guests have enough turns", || fewest_and_most(&since(crew, from), guests).1 >= TURNS);
    let turns = since(crew, from);
    let ((fewest, most), time) = (fewest_and_most(&turns, guests), Duration::from_nanos(now() - from));
    let rate = turns.len() as u128 * 1_000 / time.as_millis();
    println!("{rate} turns per second for {time:.1?}, a guest had {fewest} to {most}");
    (fewest, most)
}

fn since(crew: &Crew, from: u64) -> Vec<Turn> {
    crew.turns().into_iter().filter(|turn| turn.from >= from).collect()
}

/// Losses and errors, and waits of guests without a turn. A store that takes longer than the short wait of somebody who passes by is
/// unavailable to that one.
fn failures(crew: &Crew, guests: &[String]) -> Vec<String> {
    let mut failures = Vec::new();
    for (name, history) in crew.histories() {
        let is_guest = guests.contains(&seat_name(name, 0));
        let is_failure = |what: &What| match what {
            What::Ended(Ending::Lost | Ending::Untold) | What::Left(Leaving::Refused(_)) => true,
            What::Left(_) => is_guest,
            What::Waits | What::Has(_) | What::Still | What::Asks(_) | What::Answered(_) | What::Ended(_) => false,
        };
        failures.extend(history.iter().filter(|event| is_failure(&event.what)).map(|event| format!("{name}: {event}")));
    }
    failures
}
