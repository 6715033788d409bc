//! Readers that always overlap and a writer, and the reverse: who waits, waits for the turns that have begun.
//!
//! Waits are counted in turns that one seat of the others began meanwhile, and not in time.

use std::thread;
use std::time::Duration;

use stress::cast::{Cast, Mistake, STEADY, TTL};
use stress::check::{Rules, exclusion};
use stress::crew::Crew;
use stress::fair::{Calm, generations, starved};
use stress::history::now;
use stress::problem::Problem;
use stress::run::{await_that, await_workers, judge, storm};
use stress::turn::seat_name;

use crate::{crew, file_in, redis, turns_of};

/// How long they overlap, unless the environment says otherwise.
const USUAL: Duration = Duration::from_secs(3);
/// How many times the one that waits has to be served at least.
const SERVED: usize = 5;
/// How many turns one seat of the others begins meanwhile, nine times out of ten. A reader joins the others for 20 ms without
/// asking, which is half of its turn; a process passes its lock on for half of a ttl, which is about one turn for each writer.
const MOSTLY: usize = 2;
/// What is far more than any delay of a busy machine explains.
const FAR_TOO_MANY: usize = 40;

/// Lets the crowd overlap, and returns how many turns one of its seats began in each wait of the last worker: sorted.
fn meanwhile(crew: &mut Crew, length: Duration) -> Vec<usize> {
    await_workers(crew);
    thread::sleep(length);
    let last = crew.workers.len() - 1;
    await_that("the one is served", || turns_of(crew, last).len() > SERVED);
    let waits = counted(crew);
    let mut problems = crew.end();
    problems.extend(exclusion(crew.turns(), Rules { losses: &[], changes: &[], ttl: TTL }));
    assert_eq!(problems, []);
    waits
}

fn counted(crew: &Crew) -> Vec<usize> {
    let last = crew.workers.len() - 1;
    let others: Vec<_> = (0..last).flat_map(|worker| turns_of(crew, worker)).collect();
    let mut waits = generations(&crew.history_of(last), &others);
    waits.sort_unstable();
    waits
}

fn is_served(url: &str, crowd: Cast, processes: usize, one: Cast) {
    let casts: Vec<_> = [vec![(crowd, Mistake::None); processes], vec![(one, Mistake::None)]].concat();
    let mut crew = crew(url, &casts);
    let waits = meanwhile(&mut crew, storm(USUAL));
    let mostly = waits[waits.len() * 9 / 10 - 1];
    println!("{} waits, turns of the others meanwhile: mostly {mostly}, at most {:?}", waits.len(), waits.last());
    assert!(mostly <= MOSTLY, "{waits:?}");
    assert!(waits.iter().all(|turns| *turns < FAR_TOO_MANY), "{waits:?}");
    judge(crew, &[]);
}

/// 32 readers in two processes, and then 64 in four.
#[test]
fn a_writer_waits_for_one_generation_of_readers() {
    for processes in [2, 4] {
        let server = redis();
        is_served(&server.url(), Cast::Readers, processes, Cast::Writer);
    }
}

#[test]
fn a_reader_waits_for_one_generation_of_writers() {
    let server = redis();
    is_served(&server.url(), Cast::Writers, 2, Cast::Reader);
}

/// The same on a file.
#[test]
fn a_writer_waits_for_one_generation_of_readers_of_a_file() {
    let directory = test_support::temp_dir();
    is_served(&file_in(directory.path()), Cast::Readers, 2, Cast::Writer);
}

/// It asks again and again instead of waiting in the queue.
#[test]
fn a_writer_that_takes_no_place_in_the_queue_starves() {
    let (server, from) = (redis(), now());
    let crew = crew(
        &server.url(),
        &[(Cast::Readers, Mistake::None), (Cast::Readers, Mistake::None), (Cast::Writer, Mistake::Pushes)],
    );
    await_that("it waits for far too many", || counted(&crew).last() > Some(&FAR_TOO_MANY));
    let calm = Calm { from, until: now(), patience: STEADY * 20, rounds: 1 };
    assert!(matches!(
        starved(&crew.turns(), &[seat_name(crew.workers[2].name(), 0)], calm)[..],
        [Problem::Starved(..)]
    ));
    judge(crew, &[]);
}
