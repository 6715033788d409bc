//! `leasehold demo account`: the faults really show, the locks of `leasehold` are right, and nothing is left behind.

#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::leasehold::{Leasehold, code, text};
use support::wait_for;
use test_support::bounds::status_of;
use test_support::{Finish, RedisServer};

const WORKERS: u64 = 3;
const EXPECTED: u64 = 6;

/// The demo with few workers, with its temporary files in the scratch directory.
fn demo(leasehold: &Leasehold, options: &str) -> Command {
    let mut command = leasehold.command("demo account --workers 3 --deposits 2");
    std::fs::create_dir_all(leasehold.scratch.file("tmp")).unwrap();
    command.args(options.split_whitespace()).env("TMPDIR", leasehold.scratch.file("tmp"));
    command.env_remove("LEASEHOLD_DEMO_URL");
    command
}

/// The observations of the demo, stage by stage.
fn seen(leasehold: &Leasehold, options: &str) -> Vec<Value> {
    let began = Instant::now();
    let output = demo(leasehold, options).arg("--json").finish();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(text(&output.stderr), "");
    let story: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(story["workers"], WORKERS);
    story["stages"].as_array().unwrap().clone()
}

fn number(stage: &Value, what: &str) -> u64 {
    stage[what].as_u64().unwrap()
}

/// The faults show, and only where they have to.
fn assert_the_story(stages: &[Value]) {
    assert_eq!(stages.len(), 8);
    for (position, stage) in (1_u64..).zip(stages) {
        assert_eq!(number(stage, "stage"), position);
        assert_eq!(number(stage, "expected"), EXPECTED);
        assert_eq!(stage["right"], number(stage, "balance") == EXPECTED);
        assert_eq!(number(stage, "lost"), number(stage, "made") - number(stage, "balance"), "{stage}");
        assert_eq!(number(stage, "stuck"), if position == 3 { WORKERS - 1 } else { 0 }, "{stage}");
        assert_eq!(stage["right"], [6, 8].contains(&position), "{stage}");
    }
    for wrong in [0, 1, 3, 4, 6].map(|index| &stages[index]) {
        assert!(number(wrong, "lost") > 0 && number(wrong, "overlaps") > 0, "{wrong}");
    }
    assert!(number(&stages[3], "freed_others") > 0, "{}", stages[3]);
    assert_eq!(number(&stages[4], "freed_others"), 0);
    assert_eq!(number(&stages[2], "overlaps"), 0);
    assert_eq!(number(&stages[5], "overlaps"), 0);
    assert_eq!(number(&stages[6], "refused"), 0);
    assert_eq!(number(&stages[7], "refused"), 1);
}

#[test]
fn the_story_is_true_on_a_file_which_is_gone_afterwards() {
    let leasehold = Leasehold::new();
    assert_the_story(&seen(&leasehold, ""));
    assert_eq!(leasehold.scratch.file("tmp").read_dir().unwrap().count(), 0);
    assert!(!leasehold.database().exists(), "the user's own locks are not touched");
}

#[test]
fn the_story_is_true_on_redis_which_is_left_as_it_was() {
    let server = RedisServer::start();
    server.command::<()>(&["SET", "shop:mine", "1"]);
    let leasehold = Leasehold::new();
    assert_the_story(&seen(&leasehold, &format!("--url {}?prefix=shop", server.url())));
    wait_for_keys(&server, &["leasehold:counter", "leasehold:incarnation", "shop:mine"]);
}

#[test]
fn an_interrupted_demo_leaves_nothing_on_redis() {
    let server = RedisServer::start();
    let leasehold = Leasehold::new();
    let mut running = Running::start(&leasehold, &format!("--json --url {}", server.url()));
    wait_for("the demo to begin", || keys(&server).iter().any(|key| key.contains("naive-lock")).then_some(()));
    assert_eq!(code(running.end_by(Signal::INT)), 130);
    wait_for_keys(&server, &["leasehold:counter", "leasehold:incarnation"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_stopped_worker_dies_with_the_demo() {
    let leasehold = Leasehold::new();
    let mut running = Running::start(&leasehold, "--json");
    let worker = wait_for("a stopped worker", || stopped_child(running.0.id()));
    running.end_by(Signal::KILL);
    support::wait_for_death(&[worker]);
}

#[test]
fn the_story_is_told_in_plain_text_where_nobody_sees_colours() {
    let leasehold = Leasehold::new();
    let output = demo(&leasehold, "").finish();
    let (told, progress) = (text(&output.stdout), text(&output.stderr));
    assert!(!told.contains('\u{1b}') && !progress.contains('\u{1b}'), "{told}{progress}");
    assert!(told.lines().all(|line| line.chars().count() < 100), "{told}");
    assert_eq!(told.lines().filter(|line| line.starts_with("    balance ")).count(), 8, "{told}");
    assert!(
        told.contains("\n 6  renewed lease    ████████████████████████        6             0         0\n"),
        "{told}"
    );
    assert_eq!(progress.lines().count(), 8, "{progress}");
    assert!(progress.contains("stage 8 of 8: "), "{progress}");
}

#[test]
fn a_store_of_one_process_is_refused() {
    let leasehold = Leasehold::new();
    for (options, expected) in [("--url memory:", 78), ("--url redsi://h", 78), ("--url redis://127.0.0.1:1", 69)] {
        let output = demo(&leasehold, options).finish();
        assert_eq!(code(output.status), expected, "{options}: {}", text(&output.stderr));
    }
}

/// A running demo. Killed at the end of the test.
struct Running(Child);

impl Running {
    fn start(leasehold: &Leasehold, options: &str) -> Self {
        Self(demo(leasehold, options).stdout(Stdio::null()).spawn().unwrap())
    }

    fn end_by(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        status_of(&mut self.0, "the demo")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until these are all keys: the last number of a queue expires with its places.
fn wait_for_keys(server: &RedisServer, expected: &[&str]) {
    wait_for(&format!("no keys but {expected:?}"), || (keys(server) == expected).then_some(()));
}

fn keys(server: &RedisServer) -> Vec<String> {
    let mut keys: Vec<String> = server.command(&["KEYS", "*"]);
    keys.sort();
    keys
}

/// A child that is stopped, from the list of all processes.
#[cfg(target_os = "linux")]
fn stopped_child(parent: u32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).find(|pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    })
}
