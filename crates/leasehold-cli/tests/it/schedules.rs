//! `leasehold run` for the slots of a schedule: several machines call, and one runs the command.

use std::time::Duration;

use crate::support::leasehold::{Leasehold, Running, code, report, text};
use crate::support::nodes::Nodes;
use crate::support::{Scratch, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::RedisServer;

fn stores(server: &RedisServer) -> [String; 2] {
    [String::new(), format!("--url {}", server.url())]
}

fn runs(leasehold: &Leasehold) -> usize {
    std::fs::read_to_string(leasehold.scratch.file("runs")).unwrap_or_default().lines().count()
}

#[test]
fn a_slot_runs_once_however_it_is_written_and_wherever_the_machine_is() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let machines = [
            ("2099-11-21T03:00", "America/New_York"),
            ("2099-11-21T04:00+01:00", "Europe/Berlin"),
            ("2099-11-20T22:00-05", "UTC"),
        ];
        let started = machines.map(|(slot, zone)| {
            let line = format!("{url} --json --slot {slot} nightly");
            let mut command = leasehold.script(&line, "echo $LEASEHOLD_NAME >> runs");
            command.env("TZ", zone);
            Running::spawn(command)
        });
        let outputs = started.map(Running::end);
        for output in &outputs {
            assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
            assert_eq!(report(output)["job_slot"], "2099-11-21T03:00:00Z", "those that skip it name it as well");
        }
        let mut outcomes = outputs.each_ref().map(|output| report(output)["outcome"].to_string());
        outcomes.sort();
        assert_eq!((outcomes, runs(&leasehold)), (["\"ended\"", "\"skipped\"", "\"skipped\""].map(str::to_owned), 1));
        let late = leasehold.run(&format!("{url} --slot 2099-11-21T03:00Z nightly"), "echo >> runs");
        let said = text(&late.stderr);
        assert_eq!((code(late.status), runs(&leasehold)), (0, 1), "{said}");
        assert!(said.contains("its slot 2099-11-21T03:00:00Z has run, by pid"), "{said}");
        let next = leasehold.run(&format!("{url} --slot 2099-11-22T03:00 nightly"), "echo >> runs");
        assert_eq!((code(next.status), runs(&leasehold)), (0, 2), "{}", text(&next.stderr));
    }
}

#[test]
fn a_slot_that_runs_is_told_from_one_that_has_run() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let line = format!("{url} --slot 2099-11-21T03:00 nightly");
        let script = "echo $LEASEHOLD_FENCE > token; while [ ! -e done ]; do sleep 0.02; done; echo >> runs";
        let running = leasehold.start(&line, script, "token");
        let skip = |reason: &str| {
            let output = leasehold.run(&format!("--json {line}"), script);
            assert_eq!((code(output.status), report(&output)["skipped"]["reason"].as_str()), (0, Some(reason)));
            report(&output)["skipped"].clone()
        };
        let now = skip("runs");
        let token = leasehold.scratch.text_of("token").trim().to_owned();
        assert_eq!(now["token"].to_string(), token);
        let said = text(&leasehold.run(&line, script).stderr);
        assert!(said.contains("runs now, by pid") && said.contains(&format!("token {token}")), "{said}");
        assert_eq!(leasehold.json(&format!("show {url} nightly"))["why"], "slot 2099-11-21T03:00:00Z");
        std::fs::write(leasehold.scratch.file("done"), "").unwrap();
        assert_eq!(code(running.end().status), 0);
        let before = skip("has-run");
        assert_eq!((&before["token"], &before["holder"], runs(&leasehold)), (&Value::Null, &now["holder"], 1));
    }
}

#[test]
fn a_slot_whose_command_fails_is_run_again_if_the_line_says_so() {
    let server = RedisServer::start();
    for url in stores(&server) {
        for (name, also) in [("nightly", ""), ("retried", "--retry-after-crash")] {
            let leasehold = Leasehold::new();
            let line = format!("{url} --slot 2099-11-21T03:00 --at-least 10m --retry-after-failure {also} {name}");
            let script = "echo >> runs; [ $(wc -l < runs) = 3 ]";
            let ends = [(); 4].map(|()| leasehold.run(&line, script)).map(|output| code(output.status));
            assert_eq!((ends, runs(&leasehold)), ([1, 1, 0, 0], 3), "{line}");
        }
        let leasehold = Leasehold::new();
        let line = format!("{url} --slot 2099-11-21T03:00 once");
        let ends = [(); 2].map(|()| code(leasehold.run(&line, "echo >> runs; exit 7").status));
        assert_eq!((ends, runs(&leasehold)), ([7, 0], 1), "a failure counts as run");
    }
}

#[test]
fn slots_that_nobody_has_run_are_reported() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let run = |slot: &str, option: &str| leasehold.run(&format!("{url} --slot {slot} {option} hourly"), "true");
        let hours = ["03", "05", "06"].map(|hour| format!("2099-11-21T{hour}:00"));
        let [first, second, last] = hours.map(|slot| run(&slot, "--previous 2099-11-21T02:00 --json"));
        // Nobody can have missed what came before the first slot that ever ran.
        assert_eq!([&report(&first)["missed"], &report(&second)["missed"]], [&Value::Null; 2]);
        assert_eq!(code(last.status), 0);
        let skipped = report(&run("2099-11-21T06:30", "--previous 2099-11-21T05:30 --json"));
        assert_eq!(skipped["missed"], json!(["2099-11-21T05:30:00Z"]));
        let said = text(&run("2099-11-21T08:00", "--every 1h").stderr);
        assert!(said.contains("hourly has missed the slot 2099-11-21T07:00:00Z;"), "{said}");
        let said = text(&run("2099-11-21T11:00", "--every 1h").stderr);
        assert!(said.contains("hourly has missed the slots 2099-11-21T09:00:00Z, 2099-11-21T10:00:00Z;"), "{said}");
        let said = text(&run("2099-11-21T12:00", "--every 1h").stderr);
        assert!(!said.contains("has missed"), "{said}");
        let said = text(&run("2099-12-21T12:00", "--every 1h").stderr);
        assert!(said.contains("hourly has missed 100 slots, 2099-12-17T08:00:00Z to 2099-12-21T11:00:00Z;"), "{said}");
    }
}

/// A year after it was marked, or if the runs before did not know the schedule, the first night that is missed is reported as well.
#[test]
fn the_first_slot_is_remembered_for_as_long_as_the_job_runs() {
    let (server, scratch) = (RedisServer::start(), Scratch::new());
    for url in [format!("sqlite:{}", scratch.file("locks.db").display()), server.url()] {
        let leasehold = Leasehold::new();
        let missed = |name: &str, hour: u32| {
            let slots = format!("--slot 2099-11-21T{hour}:00 --previous 2099-11-21T{}:00", hour - 1);
            report(&leasehold.run(&format!("--url {url} --json {slots} {name}"), "true"))["missed"].clone()
        };
        let locks = leasehold::blocking::connect(&url).unwrap();
        let (name, keep) = ("old@1970-01-01T00:00:00Z", Duration::from_secs(365 * 24 * 3600));
        let first = locks.mutex(name).why("slot 2099-11-21T10:00:00Z").try_acquire().unwrap().unwrap();
        first.release_keeping(keep / 2 - Duration::from_secs(60)).unwrap();
        assert_eq!(missed("old", 12), json!(["2099-11-21T11:00:00Z"]));
        let mark = locks.inspect().unwrap().holder(&name.parse().unwrap(), Duration::from_secs(10)).unwrap().unwrap();
        assert!(mark.remaining.unwrap() > keep - Duration::from_secs(3600), "{mark:?}");
        let known = leasehold.run(&format!("--url {url} --slot 2099-11-21T11:00 other"), "true");
        assert_eq!(code(known.status), 0, "{}", text(&known.stderr));
        assert_eq!([12, 14].map(|hour| missed("other", hour)), [Value::Null, json!(["2099-11-21T13:00:00Z"])]);
    }
}

/// By default, a slot whose run died counts as run.
#[test]
fn a_run_that_dies_is_repeated_only_if_the_line_says_so() {
    for (option, again) in [("", 1), ("--retry-after-crash", 2)] {
        let leasehold = Leasehold::new();
        let line = format!("--ttl 2s --slot 2099-11-21T03:00 {option} nightly");
        let script = "echo >> runs; [ $(wc -l < runs) = 2 ] || sleep 60";
        let first = leasehold.start(&line, script, "runs");
        first.signal(Signal::KILL);
        first.await_death();
        wait_for("the slot to be free or known to be taken", || {
            let output = leasehold.run(&format!("--json {line}"), script);
            assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
            (again == 1 || runs(&leasehold) == again).then_some(())
        });
        wait_for("the lock to be free", || (leasehold.json("show nightly")["held"] == false).then_some(()));
        let last = leasehold.run(&format!("--json {line}"), script);
        assert_eq!((report(&last)["outcome"].as_str(), runs(&leasehold)), (Some("skipped"), again));
    }
}

/// A machine that is suspended while it waits loses the mark of its slot, and another one takes it.
#[test]
fn a_machine_that_lost_its_slot_while_it_waited_does_not_run_it() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let holder =
            leasehold.start(&format!("{url} nightly"), "echo > held; while [ ! -e done ]; do sleep 0.02; done", "held");
        let is_marked = || leasehold.json(&format!("show {url} nightly@2099-11-21T03:00:00Z"))["held"] == true;
        let line = format!("{url} --json --ttl 2s --slot 2099-11-21T03:00 --retry-after-crash nightly");
        let first = Running::spawn(leasehold.script(&line, "echo >> runs"));
        wait_for("the first to mark the slot", || is_marked().then_some(()));
        wait_for("the first to be stopped between two requests, so that it blocks nobody", || {
            first.signal(Signal::STOP);
            let is_between = leasehold.run(&format!("-n {url} probe"), "true").status.success();
            if !is_between {
                first.signal(Signal::CONT);
            }
            is_between.then_some(())
        });
        wait_for("the mark to expire", || (!is_marked()).then_some(()));
        let second = Running::spawn(leasehold.script(&line, "echo >> runs"));
        wait_for("the second to mark the slot", || is_marked().then_some(()));
        first.signal(Signal::CONT);
        std::fs::write(leasehold.scratch.file("done"), "").unwrap();
        let [holder, first, second] = [holder, first, second].map(Running::end);
        let said = text(&first.stderr);
        assert_eq!([holder, first, second].map(|output| code(output.status)), [0, 76, 0], "{said}");
        assert!(said.contains("the lease of the slot was lost before the command began"), "{said}");
        assert_eq!(runs(&leasehold), 1);
    }
}

#[test]
fn at_least_keeps_the_lock_after_a_short_command() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let run = |time: &str| leasehold.run(&format!("{url} -n --at-least {time} poll"), "echo >> runs");
        assert_eq!([run("10m"), run("10m")].map(|output| code(output.status)), [0, 75]);
        assert_eq!(runs(&leasehold), 1);
        assert_eq!(leasehold.json(&format!("show {url} poll"))["held"], true);
        let said = text(&run("10m").stderr);
        assert!(said.contains("poll stays locked for 9m") && said.contains("whose process is gone; to wait"), "{said}");
        let brief = leasehold.run(&format!("{url} -w 20s --at-least 1ms other"), "sleep 0.1");
        assert_eq!(code(brief.status), 0, "{}", text(&brief.stderr));
        assert_eq!(leasehold.json(&format!("show {url} other"))["held"], false);
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_the_lock_is_free() {
    let leasehold = Leasehold::new();
    let output = leasehold.run("--ttl 3s --at-most 4s --at-least 3s slow", "sleep 60 & wait");
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 76, "{said}");
    assert!(said.contains("as long as --at-most 4s allows"), "{said}");
    assert_eq!(leasehold.json("show slow")["held"], false, "at-least is for a run that has ended");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let leasehold = Leasehold::new();
    for (line, words) in [
        ("--slot soon a", &["slot", "soon", "it is not a time", "2026-11-21T03:00"][..]),
        ("--slot 2099-11-21T03:00[Europe/Berlin] a", &["it names a time zone"]),
        ("--slot 2001-01-01 a", &["2001-01-01T00:00:00Z", "older than 7days"]),
        ("--retain 1h --slot 2020-01-01 a", &["older than 1h"]),
        ("--retain 1h a", &["--slot"]),
        ("--retry-after-crash a", &["--slot"]),
        ("--slot 2099-01-01 -s a", &["--slot", "--shared"]),
        ("--at-least 1m --slots 2 a", &["--at-least", "--slots"]),
        ("--at-least 2m --at-most 1m a", &["at-least", "2m", "above --at-most, which is 1m"]),
        ("--at-most 5s a", &["at-most", "5s", "8s", "--grace"]),
        ("--at-least soon a", &["at-least", "soon"]),
        ("--retry-after-failure a", &["--slot"]),
        ("--every 1h a", &["--slot"]),
        ("--slot 2099-01-01 --every 1ms a", &["\"1ms\"", "whole seconds"]),
        ("--slot 2099-01-01 --previous 2099-01-02 a", &["2099-01-02T00:00:00Z", "it is not before 2099-01-01"]),
        ("--slot 2099-01-01 --every 1d --previous 2098-12-31 a", &["--every", "--previous"]),
    ] {
        let output = leasehold.run(line, "touch ran");
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 64, "{line}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{line}: {said}");
    }
    assert!(!leasehold.database().exists() && !leasehold.scratch.file("ran").exists());
}

#[test]
fn a_quorum_says_that_it_keeps_no_locks() {
    let (leasehold, nodes) = (Leasehold::new(), Nodes::founded(3));
    for option in ["--slot 2099-11-21T03:00", "--at-least 1m"] {
        let output = leasehold.run(&format!("--url {} --ttl 3s {option} a", nodes.url()), "touch ran");
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 78, "{option}: {said}");
        assert!(said.contains("cannot keep a released lock"), "{option}: {said}");
    }
    assert!(!leasehold.scratch.file("ran").exists());
}
