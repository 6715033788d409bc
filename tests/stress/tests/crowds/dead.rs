//! Holders that are killed: what they held comes back at the end of their leases.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold::blocking::Client;
use stress::cast::{BOOK, Cast, DOCK, TTL, limit};
use stress::check::{Rules, exclusion};
use stress::crew::Crew;
use stress::run::{await_that, judge};
use test_support::signals::kill_now;

use crate::{file_in, redis, sound, turns_of};

/// How long what the dead held may take to come back, on a busy machine.
const SOON: Duration = Duration::from_secs(20);
/// How many processes there are at a time; each is killed with ten permits.
const PROCESSES: usize = 5;
/// How many times all are killed: a thousand permits.
const TIMES: usize = 20;

fn client(url: &str) -> Client {
    leasehold::blocking::connect(url).unwrap()
}

/// Each process holds ten permits with one client, and all fifty are held at a time. If one did not come back, the next
/// processes would not have all of them. One more permit is held all the time, so that the semaphore is never unused.
fn thousand_permits_come_back(url: &str) {
    let survivor = client(url).semaphore(DOCK, limit(DOCK)).acquire().unwrap();
    let mut crew = sound(url, &[Cast::Ships; PROCESSES]);
    for _ in 1..TIMES {
        all_are_held(&crew);
        (0..PROCESSES).for_each(|worker| crew.replace(worker));
    }
    all_are_held(&crew);
    crew.workers.iter().for_each(|worker| kill_now(worker.pid()));
    let permits = client(url).semaphore(DOCK, limit(DOCK)).wait(SOON).acquire_many(limit(DOCK) - 1).unwrap();
    let slots: BTreeSet<u32> = permits.slots().iter().chain(survivor.slots()).copied().collect();
    assert_eq!(slots, (0..limit(DOCK)).collect());
    permits.release().unwrap();
    survivor.release().expect("it was never lost");
    let turns = crew.turns();
    assert!(turns.len() >= TIMES * 50, "{} turns", turns.len());
    let problems = exclusion(turns, Rules { losses: &[], changes: &[], ttl: TTL });
    judge(crew, &problems);
}

fn all_are_held(crew: &Crew) {
    let seats = Cast::Ships.wishes().len();
    await_that("all permits are held", || (0..PROCESSES).all(|worker| holding(crew, worker) == seats));
}

/// How many seats of a worker have had a turn.
fn holding(crew: &Crew, worker: usize) -> usize {
    let seats: BTreeSet<_> = turns_of(crew, worker).into_iter().map(|turn| turn.who).collect();
    seats.len()
}

#[test]
fn a_thousand_permits_of_killed_holders_come_back() {
    let server = redis();
    thousand_permits_come_back(&server.url());
    await_that("nothing is left", || server.keys().is_empty());
}

#[test]
fn a_thousand_permits_of_killed_holders_come_back_in_a_file() {
    let directory = test_support::temp_dir();
    thousand_permits_come_back(&file_in(directory.path()));
}

/// One of two readers is killed: its lease ends while the other reads on, and a client of another kind stays out all the time.
#[test]
fn a_killed_reader_ends_alone() {
    let server = redis();
    let mut crew = sound(&server.url(), &[Cast::Browser; 2]);
    await_that("both read", || (0..2).all(|worker| !turns_of(&crew, worker).is_empty()));
    let client = client(&server.url());
    let leases = || client.inspect().unwrap().holder(&BOOK.parse().unwrap(), SOON).unwrap().map(|entry| entry.leases);
    let is_free = || server.command::<Option<String>>(&["SET", BOOK, "theirs", "NX", "PX", "30000"]).is_some();
    assert_eq!(leases(), Some(2));
    kill_now(crew.workers[0].pid());
    await_that("its lease ends", || {
        assert!(!is_free());
        leases() == Some(1)
    });
    assert!(client.rw_lock(BOOK).write().try_acquire().unwrap().is_none());
    let held_until = |crew: &Crew| turns_of(crew, 1).last().map(|turn| turn.until);
    let before = held_until(&crew);
    await_that("the other one reads on", || held_until(&crew) > before);
    assert!(!is_free());
    crew.end();
    await_that("the lock is free", is_free);
    judge(crew, &[]);
}
