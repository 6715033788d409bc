//! The usual tasks, on both stores: jobs that do not run twice, and counters without lost updates.

use std::time::{Duration, Instant};

use crate::support::leasehold::{Leasehold, code, report};
use crate::support::{STUBBORN, wait_for_death};
use rustix::process::Signal;
use test_support::RedisServer;

const PROCESSES: usize = 16;
const INCREMENTS: usize = 50;
/// How the command ends if it cannot connect.
const UNREACHED: i32 = 69;
const INCREMENT: &str = "n=$(cat number); echo $((n + 1)) > number; echo $LEASEHOLD_FENCE >> tokens";

/// Many processes add to a number in a plain file, which nothing but the lock protects.
fn count(options: &str) {
    let leasehold = Leasehold::new();
    std::fs::write(leasehold.scratch.file("number"), "0\n").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                for _ in 0..INCREMENTS {
                    // On a busy machine, a second may be too little to connect. Then nothing was run.
                    let mut tries = (0..10).map(|_| leasehold.run(options, INCREMENT));
                    let output = tries.find(|output| code(output.status) != UNREACHED).unwrap();
                    assert_eq!(code(output.status), 0, "{output:?}");
                }
            });
        }
    });
    assert_eq!(leasehold.scratch.text_of("number").trim(), (PROCESSES * INCREMENTS).to_string());
    assert_rising(&leasehold.scratch.text_of("tokens"), PROCESSES * INCREMENTS);
}

fn assert_rising(tokens: &str, count: usize) {
    let tokens: Vec<u64> = tokens.lines().map(|token| token.parse().unwrap()).collect();
    assert_eq!(tokens.len(), count);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

#[test]
fn sixteen_processes_count_to_800_on_sqlite() {
    count("counter");
}

#[test]
fn sixteen_processes_count_to_800_on_redis() {
    let server = RedisServer::start();
    count(&format!("--url {} counter", server.url()));
}

/// A holder that is killed, together with its guard, blocks others for its ttl: not less, and not forever.
fn killed(options: &str) {
    let leasehold = Leasehold::new();
    let began = Instant::now();
    let running = leasehold.start(&format!("{options} --ttl 4s a"), STUBBORN, "pids");
    let acquired = Instant::now();
    running.signal(Signal::KILL);
    assert_eq!(code(leasehold.run(&format!("{options} -n a"), "true").status), 75, "the lease is still running");
    assert_eq!(code(leasehold.run(&format!("{options} -w 30s a"), "true").status), 0);
    assert!(began.elapsed() >= Duration::from_secs(4), "before its ttl");
    assert!(acquired.elapsed() < Duration::from_secs(20), "long after its ttl");
    wait_for_death(&leasehold.scratch.pids_of("pids"));
}

#[test]
fn a_killed_holder_frees_the_lock_after_its_ttl_on_sqlite() {
    killed("");
}

#[test]
fn a_killed_holder_frees_the_lock_after_its_ttl_on_redis() {
    let server = RedisServer::start();
    killed(&format!("--url {}", server.url()));
}

/// The store goes away under a running command: it and its children are dead before the lease ends, with code 76.
fn store_goes_away(go_away: impl FnOnce(&mut RedisServer)) {
    let mut server = RedisServer::start();
    let leasehold = Leasehold::new();
    let began = Instant::now();
    let running = leasehold.start(&format!("--url {} --ttl 4s --json a", server.url()), STUBBORN, "pids");
    // A renewal may just have gone through: the last lease ends a ttl after this moment at the latest.
    go_away(&mut server);
    let last_end = Instant::now() + Duration::from_secs(4);
    wait_for_death(&leasehold.scratch.pids_of("pids"));
    assert!(Instant::now() < last_end, "dead {:?} after the start, later than its lease", began.elapsed());
    let output = running.end();
    assert_eq!(code(output.status), 76, "{output:?}");
    assert_eq!(report(&output)["outcome"], "lost");
}

#[test]
fn a_store_that_is_killed_ends_the_command_in_time() {
    store_goes_away(RedisServer::kill);
}

#[test]
fn a_store_that_is_stopped_ends_the_command_in_time() {
    store_goes_away(|server| server.stop());
}

/// Tokens keep rising after the file was deleted, and when the lock moves to Redis.
#[test]
fn tokens_rise_over_stores() {
    let server = RedisServer::start();
    let leasehold = Leasehold::new();
    let note = "echo $LEASEHOLD_FENCE >> tokens";
    let hold = |options: &str| {
        for _ in 0..3 {
            assert_eq!(code(leasehold.run(options, note).status), 0);
        }
    };
    hold("a");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", leasehold.database().display()));
    }
    hold("a");
    hold(&format!("--url {} a", server.url()));
    assert_rising(&leasehold.scratch.text_of("tokens"), 9);
}
