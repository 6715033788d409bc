//! A store that is away: before the lock is held, and when it is to be released.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::support::leasehold::{Leasehold, Running, code, text};
use crate::support::wait_for;
use test_support::{RedisOptions, RedisServer};

#[test]
fn a_waiter_waits_for_a_store_that_is_away_from_the_beginning() {
    let mut server = RedisServer::start_with(RedisOptions::default().append_only());
    server.kill();
    let leasehold = Leasehold::new();
    let mut script = leasehold.script(&format!("-v -w 50s --url {} a", server.url()), "exit 3");
    script.stderr(File::create(leasehold.scratch.file("said")).unwrap());
    let waiter = Running::started(script);
    says(&leasehold, "waiting for a");
    server.restart_with_data();
    assert_eq!(code(waiter.end().status), 3);
}

#[test]
fn a_store_that_stays_away_is_an_error_at_the_end_of_the_wait_and_at_once_without_one() {
    let leasehold = Leasehold::new();
    let url = "--url redis://127.0.0.1:1";
    for (options, least) in [("-w 1s", 600), ("-n", 0), ("", 0)] {
        let began = Instant::now();
        let output = leasehold.run(&format!("{options} {url} a"), "true");
        assert_eq!(code(output.status), 69, "{options}: {}", text(&output.stderr));
        assert!(began.elapsed() >= Duration::from_millis(least), "{options}: {:?}", began.elapsed());
        assert!(text(&output.stderr).contains("refused"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_wait_for_a_store_that_is_away_can_be_given_up() {
    let leasehold = Leasehold::new();
    let mut script = leasehold.script("-v -w 50s --url redis://127.0.0.1:1 a", "true");
    script.stderr(File::create(leasehold.scratch.file("said")).unwrap());
    let waiter = Running::started(script);
    says(&leasehold, "waiting for a, ");
    waiter.signal(rustix::process::Signal::INT);
    assert_eq!(code(waiter.end().status), 130);
}

#[test]
fn connections_that_broke_while_the_command_ran_do_not_keep_the_lock() {
    let server = RedisServer::start();
    let leasehold = Leasehold::new();
    for run in 0..5 {
        let done = leasehold.scratch.file(&format!("done{run}"));
        let hold = format!("echo r > held{run}; while [ ! -e done{run} ]; do sleep 0.02; done");
        let holder = leasehold.start(&format!("--url {} --ttl 50s a", server.url()), &hold, &format!("held{run}"));
        for kind in ["normal", "pubsub"] {
            let _: u64 = server.command(&["CLIENT", "KILL", "TYPE", kind]);
        }
        std::fs::write(done, "").unwrap();
        let output = holder.end();
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        let next = leasehold.run(&format!("--url {} -w 5s a", server.url()), "true");
        assert_eq!(code(next.status), 0, "run {run}: {}{}", text(&output.stderr), text(&next.stderr));
    }
}

/// Waits until the command has said this.
fn says(leasehold: &Leasehold, text: &str) {
    wait_for(text, || leasehold.scratch.text_of("said").contains(text).then_some(()));
}
