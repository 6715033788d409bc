//! A store that fails during a wait: the wait continues, and says why.

use std::process::Command;

use crate::support;
use crate::support::leasehold::{Leasehold, Running, code, report, text};
use crate::support::wait_for;
use rustix::process::Signal;
use serde_json::Value;
use test_support::{Finish, RedisServer};

/// Waits on a disk that is full: on a terminal, into a log, and as JSON.
const ON_A_FULL_DISK: &str = r#"
    leasehold run a -- sh -c 'echo r > held; exec sleep 60' & holder=$!
    until [ -e held ]; do sleep 0.05; done
    cat /dev/zero > disk/all-that-is-left 2> /dev/null
    leasehold run a -- true 2> log & waiters=$!
    script -qec 'leasehold run a -- true' /dev/null > screen < /dev/null & waiters="$waiters $!"
    leasehold run -w 10s --json a -- true 2> report
    until grep -q 'still waiting' log && grep -q 'still waiting' screen; do sleep 0.1; done
    kill $waiters $holder"#;

/// A shell script with a small file system of its own at `disk`.
fn with_a_small_disk(leasehold: &Leasehold, script: &str) -> Command {
    std::fs::create_dir_all(leasehold.scratch.file("disk")).unwrap();
    let mut command = leasehold.program("timeout");
    command.args(["60", "unshare", "--mount"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.env("PATH", support::path_with_leasehold()).env("SHELL", "/bin/sh");
    command.args(["sh", "-c", &format!("mount -t tmpfs -o size=1m none disk || exit 99; {script}")]);
    command
}

#[test]
fn a_full_disk_is_reported_while_the_wait_goes_on() {
    let leasehold = Leasehold::new();
    let probe = with_a_small_disk(&leasehold, "true").finish();
    if !probe.status.success() {
        eprintln!("not tried, since nothing can be mounted here: {}", text(&probe.stderr));
        return;
    }
    let mut session = with_a_small_disk(&leasehold, ON_A_FULL_DISK);
    let output = session.env("LEASEHOLD_URL", "sqlite:disk/locks.db").finish();
    let shown = |name: &str| std::fs::read_to_string(leasehold.scratch.file(name)).unwrap_or_default();
    assert_eq!(code(output.status), 0, "{}, {}, {}", text(&output.stderr), shown("log"), shown("screen"));
    for name in ["log", "screen"] {
        let file = leasehold.scratch.file("disk/locks.db");
        let expected = format!(
            "still waiting for a, but sqlite acquire: the disk of {} is full; make room on that disk",
            file.display()
        );
        // A screen breaks it between words.
        let shown = shown(name).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(shown.matches(&expected).count(), 1, "{name}: {shown}");
    }
    let lines: Vec<Value> = shown("report").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [waiting, report] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&waiting["outcome"], &waiting["name"]), (&"waiting".into(), &"a".into()));
    assert!(waiting["message"].as_str().unwrap().contains("still waiting for a, but sqlite"), "{waiting}");
    assert_eq!(report["exit"], 69);
    assert!(report["warnings"][0].as_str().unwrap().contains("is full"), "{report}");
}

/// One that is empty could be taken for a report.
#[test]
fn a_report_that_cannot_be_written_leaves_no_file() {
    const ON_A_FULL_DISK: &str =
        "cat /dev/zero > disk/fill; leasehold run -n --report disk/report a -- true && ! ls disk/report";
    let leasehold = Leasehold::new();
    let output = with_a_small_disk(&leasehold, ON_A_FULL_DISK).finish();
    let said = text(&output.stderr);
    if output.status.code() == Some(99) || said.contains("unshare failed") {
        eprintln!("not tried, since nothing can be mounted here: {said}");
        return;
    }
    assert_eq!(code(output.status), 0, "{said}");
    assert!(said.contains("cannot write the report to disk/report: "), "{said}");
}

#[test]
fn waiters_are_told_that_a_primary_became_a_replica() {
    told_of_a_replica("-x");
}

#[test]
fn waiters_for_a_slot_are_told_as_well() {
    told_of_a_replica("--slots 1");
}

fn told_of_a_replica(kind: &str) {
    let (leasehold, server) = (Leasehold::new(), RedisServer::start());
    let url = server.url();
    let _holder = leasehold.start(&format!("{kind} --url {url} a"), "echo r > held; sleep 60", "held");
    let mut told = leasehold.program("sh");
    let line = format!("exec {} run {kind} --url {url} a -- true 2> log", env!("CARGO_BIN_EXE_leasehold"));
    let told = Running::spawn({
        told.args(["-c", &line]);
        told
    });
    let json = Running::spawn(leasehold.command(&format!("run {kind} --json -w 15s --url {url} a -- true")));
    wait_for("two waiters", || (leasehold.json(&format!("show --url {url} a"))["waiters"] == 2).then_some(()));
    let _: () = server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let log = || std::fs::read_to_string(leasehold.scratch.file("log")).unwrap_or_default();
    wait_for("the error in the log", || log().contains("replica").then_some(()));
    assert!(log().contains("still waiting for a, but redis") && log().contains("connect to the primary"), "{}", log());
    told.signal(Signal::TERM);
    assert_eq!(code(told.end().status), 128 + 15);
    let report = report(&json.end());
    assert!(report["warnings"][0].as_str().unwrap().contains("replica"), "{report}");
}
