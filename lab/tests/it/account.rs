//! `cargo xtask lab account`: the faults really show, the locks of `leasehold` are right, and nothing is left behind.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Lab, code, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::bounds::{status_of, wait_for};
use test_support::{Finish, RedisServer};

const WORKERS: u64 = 3;
const EXPECTED: u64 = 6;

/// The scene with few workers.
fn scene(lab: &Lab, options: &str) -> Command {
    lab.command(&format!("account --workers 3 --deposits 2 {options}"))
}

/// The observations of the scene, stage by stage.
fn seen(lab: &Lab, options: &str) -> Vec<Value> {
    let began = Instant::now();
    let output = scene(lab, options).arg("--json").finish();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(text(&output.stderr), "");
    let story: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(story["workers"], WORKERS);
    story["stages"].as_array().unwrap().clone()
}

fn number(stage: &Value, what: &str) -> u64 {
    stage[what].as_u64().unwrap()
}

/// What a stage may count besides. (To notice a loss in time is always right. It happens where the machine is busy.)
const RARE: [&str; 5] = ["passes", "stuck", "wrong_deletes", "wrong_renewals", "refused"];

/// What must be seen in a stage.
struct Seen {
    label: &'static str,
    /// Deposits are lost.
    loses: bool,
    /// Two workers are inside at the same time.
    overlaps: bool,
    /// What is counted besides. Nothing else may be.
    rare: &'static [(&'static str, Times)],
}

#[derive(Clone, Copy)]
enum Times {
    Exactly(u64),
    AtLeast(u64),
}

const fn wrong(label: &'static str, rare: &'static [(&'static str, Times)]) -> Seen {
    Seen { label, loses: true, overlaps: true, rare }
}

const fn right(label: &'static str, rare: &'static [(&'static str, Times)]) -> Seen {
    Seen { label, loses: false, overlaps: false, rare }
}

const STAGES: [Seen; 20] = [
    wrong("no lock", &[]),
    wrong("new lock each time", &[]),
    wrong("lock in memory", &[]),
    wrong("check, then set", &[("wrong_deletes", Times::AtLeast(0))]),
    right("no expiry", &[("stuck", Times::Exactly(WORKERS - 1))]),
    right("expiry set later", &[("stuck", Times::Exactly(WORKERS - 1))]),
    wrong("with expiry", &[("wrong_deletes", Times::AtLeast(1))]),
    wrong("check, then delete", &[("wrong_deletes", Times::AtLeast(1))]),
    wrong("checked release", &[]),
    wrong("blind watchdog", &[("wrong_renewals", Times::AtLeast(1))]),
    right("renewed lease", &[]),
    wrong("lock per deposit", &[]),
    right("one lock for all", &[]),
    right("lock per account", &[]),
    right("fair", &[]),
    right("barging", &[("passes", Times::Exactly(WORKERS - 2))]),
    wrong("suspended", &[]),
    Seen { loses: false, ..wrong("fencing token", &[("refused", Times::AtLeast(1))]) },
    wrong("token, read first", &[]),
    Seen { loses: false, ..wrong("fence raised first", &[("refused", Times::AtLeast(1))]) },
];

/// The faults show, and only where they have to.
fn assert_the_story(stages: &[Value]) {
    assert_eq!(stages.len(), STAGES.len());
    for ((position, stage), expected) in (1_u64..).zip(stages).zip(&STAGES) {
        assert_eq!(number(stage, "stage"), position);
        assert_eq!(stage["label"], expected.label);
        assert_eq!(number(stage, "expected"), EXPECTED);
        assert_eq!(stage["right"], number(stage, "balance") == EXPECTED);
        assert_eq!(number(stage, "lost"), number(stage, "made") - number(stage, "balance"), "{stage}");
        assert_eq!(number(stage, "lost") > 0, expected.loses, "{stage}");
        assert_eq!(number(stage, "overlaps") > 0, expected.overlaps, "{stage}");
        for what in RARE {
            let seen = number(stage, what);
            match expected.rare.iter().find(|(rare, _)| *rare == what).map_or(Times::Exactly(0), |(_, times)| *times) {
                Times::Exactly(times) => assert_eq!(seen, times, "{what}: {stage}"),
                Times::AtLeast(times) => assert!(seen >= times, "{what}: {stage}"),
            }
        }
    }
    let waits = |label| number(stages.iter().find(|stage| stage["label"] == label).unwrap(), "waits");
    assert!(waits("one lock for all") > 0);
    assert_eq!(["lock per account", "lock per deposit", "new lock each time"].map(waits), [0, 0, 0]);
}

#[test]
fn the_story_is_true_on_a_file_which_is_gone_afterwards() {
    let lab = Lab::new();
    assert_the_story(&seen(&lab, ""));
    lab.assert_nothing_is_left();
}

#[test]
fn the_story_is_true_on_redis_which_is_left_as_it_was() {
    let server = RedisServer::start();
    server.command::<()>(&["SET", "shop:mine", "1"]);
    let lab = Lab::new();
    assert_the_story(&seen(&lab, &format!("--url {}?prefix=shop", server.url())));
    wait_for_keys(&server, &["shop:mine"]);
}

#[test]
fn an_interrupted_scene_leaves_nothing_on_redis() {
    let server = RedisServer::start();
    let lab = Lab::new();
    let mut running = Running::start(&lab, &format!("--json --url {}", server.url()));
    wait_for("the scene to begin", || server.keys().iter().any(|key| key.contains("naive-lock")).then_some(()));
    assert_eq!(code(running.end_by(Signal::INT)), 130);
    wait_for_keys(&server, &[]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_stopped_worker_dies_with_the_scene() {
    let lab = Lab::new();
    let mut running = Running::start(&lab, "--json");
    let worker = wait_for("a stopped worker", || stopped_child(running.0.id()));
    running.end_by(Signal::KILL);
    // One that only waits to be reaped is dead.
    wait_for("the death of the worker", || state_of(worker).is_none_or(|state| "ZX".contains(state)).then_some(()));
}

#[test]
fn the_story_is_told_in_plain_text_where_nobody_sees_colours() {
    let lab = Lab::new();
    let output = scene(&lab, "").finish();
    let (told, progress) = (text(&output.stdout), text(&output.stderr));
    assert!(!told.contains('\u{1b}') && !progress.contains('\u{1b}'), "{told}{progress}");
    assert!(told.lines().all(|line| line.chars().count() < 100), "{told}");
    assert_eq!(told.lines().filter(|line| line.starts_with("    balance ")).count(), 20, "{told}");
    assert!(
        told.contains("\n14  lock per account    ████████████████        6             0         0      0\n"),
        "{told}"
    );
    assert!(told.contains("\n  passes  "), "every column is explained: {told}");
    assert_eq!(progress.lines().count(), 20, "{progress}");
    assert!(progress.contains("stage 20 of 20: "), "{progress}");
}

/// The labels in a chart.
fn labels(chart: &str) -> Vec<&str> {
    let lines =
        chart.lines().map(str::trim_start).filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    lines.filter_map(|line| line.split("  ").nth(1)).collect()
}

#[test]
fn the_book_shows_the_chart_with_the_labels_of_today() {
    let page = include_str!("../../../docs/book/src/concepts.md");
    let chart = page.split("```").find(|part| part.contains("  lost updates  ")).unwrap();
    assert_eq!(labels(chart), STAGES.map(|stage| stage.label));
}

#[test]
fn a_store_of_one_process_is_refused() {
    let lab = Lab::new();
    for (options, expected) in [("--url memory:", 78), ("--url redsi://h", 78), ("--url redis://127.0.0.1:1", 69)] {
        let output = scene(&lab, options).finish();
        assert_eq!(code(output.status), expected, "{options}: {}", text(&output.stderr));
    }
}

/// A running scene. Killed at the end of the test.
struct Running(Child);

impl Running {
    fn start(lab: &Lab, options: &str) -> Self {
        Self(scene(lab, options).stdout(Stdio::null()).spawn().unwrap())
    }

    fn end_by(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        status_of(&mut self.0, "the scene")
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
    wait_for(&format!("no keys but {expected:?}"), || (server.keys() == expected).then_some(()));
}

/// A child that is stopped, from the list of all processes.
#[cfg(target_os = "linux")]
fn stopped_child(parent: u32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).find(|pid| state_of(*pid) == Some('T'))
}

/// The state of a process, as a letter; `None` if it is gone.
#[cfg(target_os = "linux")]
fn state_of(pid: i32) -> Option<char> {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit(") ").next()?.chars().next()
}
