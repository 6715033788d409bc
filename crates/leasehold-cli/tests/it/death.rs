//! The promise of `leasehold run`: the command's group is dead before the lease can expire, whatever happens to
//! `leasehold` and its guard.
//!
//! The judge is the next holder: when it runs, nothing of the first command may still run.

use crate::support::leasehold::{Leasehold, Running, code, report};
use crate::support::{STUBBORN, wait_for, wait_for_death};
use leasehold::{FencingToken, blocking};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// The first command, with a grandchild; both ignore SIGTERM.
struct First {
    leasehold: Leasehold,
    running: Running,
    pids: Vec<i32>,
}

impl First {
    fn start() -> Self {
        let leasehold = Leasehold::new();
        let running = leasehold.start("--ttl 3s --json a", STUBBORN, "pids");
        let pids = leasehold.scratch.pids_of("pids");
        assert_eq!(pids.len(), 2);
        Self { leasehold, running, pids }
    }

    /// The guard is the parent of the first command.
    fn guard(&self) -> Pid {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pids[0])).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        Pid::from_raw(parent.trim().parse().unwrap()).unwrap()
    }

    /// Waits for the next holder, and looks from within its command whether anything of the first one still runs.
    fn assert_dead_when_next_holder_runs(&self) {
        let look = "for pid in $(cat pids); do grep -s 'State:.[RSDT]' /proc/$pid/status && exit 1; done; exit 0";
        let output = self.leasehold.run("-w 20s a", look);
        assert_eq!(code(output.status), 0, "something of {:?} overlapped: {output:?}", self.pids);
    }
}

#[test]
fn leasehold_is_killed() {
    let first = First::start();
    first.running.signal(Signal::KILL);
    first.assert_dead_when_next_holder_runs();
}

#[test]
fn leasehold_notices_a_loss_when_it_continues_after_a_stop() {
    let first = First::start();
    first.running.signal(Signal::STOP);
    first.assert_dead_when_next_holder_runs();
    first.running.signal(Signal::CONT);
    let output = first.running.end();
    assert_eq!(code(output.status), 76);
    assert_eq!(report(&output)["outcome"], json!("lost"));
}

#[test]
fn the_guard_is_killed() {
    let first = First::start();
    kill_process(first.guard(), Signal::KILL).unwrap();
    first.assert_dead_when_next_holder_runs();
    assert_eq!(code(first.running.end().status), 125);
}

#[test]
fn a_guard_that_is_stopped_is_set_going_again() {
    let first = First::start();
    kill_process(first.guard(), Signal::STOP).unwrap();
    kill_process(Pid::from_raw(first.pids[0]).unwrap(), Signal::KILL).unwrap();
    assert_eq!(code(first.running.end().status), 137);
    wait_for_death(&first.pids);
}

#[test]
fn leasehold_and_guard_are_killed_together() {
    let first = First::start();
    let guard = first.guard();
    first.running.signal(Signal::STOP);
    kill_process(guard, Signal::KILL).unwrap();
    first.running.signal(Signal::KILL);
    wait_for_death(&first.pids[..1]);
    // No process is left to end what the command started, as the guard's documentation says.
    kill_process(Pid::from_raw(first.pids[1]).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn the_store_falls_silent() {
    let mut first = First::start();
    let blocker = rusqlite::Connection::open(first.leasehold.database()).unwrap();
    blocker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    wait_for_death(&first.pids);
    wait_for("the end of leasehold", || first.running.has_ended().then_some(()));
    blocker.execute_batch("ROLLBACK").unwrap();
    let output = first.running.end();
    assert_eq!(code(output.status), 76);
}

#[test]
fn the_lease_is_revoked() {
    let leasehold = Leasehold::new();
    let polite = "trap 'exit 0' TERM; echo r > ready; while :; do sleep 0.05; done";
    let running = leasehold.start("--ttl 12s a", polite, "ready");
    let began = std::time::Instant::now();
    let entry = leasehold.json("show a");
    let token = FencingToken::new(entry["token"].as_u64().unwrap()).unwrap();
    let client = blocking::connect(&leasehold.url()).unwrap();
    client
        .inspect()
        .unwrap()
        .revoke(&"a".parse().unwrap(), token, &leasehold::inspect::note("").unwrap(), SECOND)
        .unwrap();
    assert_eq!(code(running.end().status), 76);
    // The next renewal finds it, after a third of the ttl; the deadline would find it after 9 s.
    assert!(began.elapsed() < SECOND * 8);
}

#[test]
fn renewals_outlast_the_ttl() {
    let leasehold = Leasehold::new();
    let until_done = "echo r > ready; while [ ! -e done ]; do sleep 0.05; done; exit 7";
    let running = leasehold.start("--ttl 6s a", until_done, "ready");
    assert_eq!(code(leasehold.run("-w 8s a", "true").status), 75);
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(running.end().status), 7);
}
