//! A crowd on one lock: processes that join the queue and leave it all the time.

use std::ops::Range;
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use stress::cast::{Cast, Mistake};
use stress::crew::Crew;
use stress::fair::fewest_and_most;
use stress::history::{Ending, Leaving, What, now};
use stress::problem::Problem;
use stress::run::{await_that, await_workers, calm_down, judge, storm};
use stress::turn::{Turn, seat_name};
use test_support::PostgresServer;

use crate::{MACHINE, crew};

/// How long the crowd is there, unless the environment says otherwise.
const USUAL: Duration = Duration::from_secs(15);
/// Those that wait until they get their turn, and are never killed ...
///
/// Chosen: the server wakes every client for each notification, so with sixteen others these have some thirty turns each in that time on
/// two cores.
const GUESTS: usize = 48;
/// ... and those that give up most of their waits. One of them is killed now and then, and another comes in its place.
const PASSERSBY: usize = 16;
/// How many milliseconds pass until the next one is killed. Its turn ends with its lease, even if it begins afterwards.
const KILLED_AFTER: Range<u64> = 2_000..4_000;
/// How many turns the guest with the most must have: a difference of two is a tenth then.
const TURNS: usize = 20;

#[test]
#[ignore = "it needs both cores for itself; `cargo xtask chaos` runs it"]
fn guests_of_a_crowd_have_equally_many_turns_and_nobody_is_told_of_an_error() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = PostgresServer::start();
    let casts = [vec![(Cast::Guest, Mistake::None); GUESTS], vec![(Cast::Passerby, Mistake::None); PASSERSBY]];
    let mut crew = crew(&server, casts.concat(), false);
    await_workers(&crew);
    let guests: Vec<_> = crew.workers[..GUESTS].iter().map(|worker| seat_name(worker.name(), 0)).collect();

    let (from, mut rng, end) = (now(), Rng::with_seed(crew.seed()), Instant::now() + storm(USUAL));
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(rng.u64(KILLED_AFTER)));
        crew.replace(rng.usize(GUESTS..GUESTS + PASSERSBY));
    }
    await_that("guests have enough turns", || fewest_and_most(&since(&crew, from), &guests).1 >= TURNS);
    let turns = since(&crew, from);
    let ((fewest, most), seconds) =
        (fewest_and_most(&turns, &guests), Duration::from_nanos(now() - from).as_secs_f64());
    println!("{:.0} turns per second for {seconds:.1} s, a guest had {fewest} to {most}", turns.len() as f64 / seconds);

    let mut problems = calm_down(&mut crew, &[]);
    // Who gives up soon may have no turn for long.
    problems.retain(|problem| !matches!(problem, Problem::Starved(who, _) if !guests.contains(who)));
    let failures = failures(&crew, &guests);
    assert!(failures.is_empty(), "{} failures: {:#?}", failures.len(), failures.iter().take(5).collect::<Vec<_>>());
    assert!(fewest * 10 >= most * 9, "a guest had {fewest} turns, and another had {most}");
    judge(crew, &problems);
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
            What::Waits | What::Has(_) | What::Still | What::Ended(_) => false,
        };
        failures.extend(history.iter().filter(|event| is_failure(&event.what)).map(|event| format!("{name}: {event}")));
    }
    failures
}
