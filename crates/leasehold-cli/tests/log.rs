//! `LEASEHOLD_LOG` and `--log`: what happens to the lock, on standard error.

#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::process::Output;

use serde_json::Value;
use support::leasehold::{Leasehold, Running, code, report, text};
use support::wait_for;
use test_support::{Finish, RedisServer};

/// Runs a script under a lock, with this `LEASEHOLD_LOG`.
fn logged(leasehold: &Leasehold, level: &str, options: &str) -> Output {
    leasehold.script(options, "true").env("LEASEHOLD_LOG", level).finish()
}

#[test]
fn nothing_is_logged_unless_asked_for() {
    let leasehold = Leasehold::new();
    assert_eq!(text(&leasehold.run("a", "true").stderr), "");
    for level in ["", "off", "error", "warn", "INFO"] {
        let output = logged(&leasehold, level, "a");
        assert_eq!((code(output.status), text(&output.stderr).as_str()), (0, ""), "{level}");
    }
    assert_eq!(text(&logged(&leasehold, "debug", "-q a").stderr), "", "-q prints nothing at all");
    assert_eq!(text(&logged(&leasehold, "debug", "--log off a").stderr), "", "the option goes first");
}

#[test]
fn the_lock_is_followed_from_acquisition_to_release() {
    let leasehold = Leasehold::new();
    let stderr = text(&logged(&leasehold, "debug", "a").stderr);
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    for (line, words) in lines.iter().zip(["debug: acquired \"a\" (token ", "debug: released \"a\" (token "]) {
        assert!(line.starts_with("leasehold: 20") && line.contains(words), "{stderr}");
    }
    let by_option = text(&leasehold.run("--log debug a", "true").stderr);
    assert_eq!(by_option.lines().count(), 2, "{by_option}");
}

#[test]
fn as_json_each_line_is_an_object_and_the_last_is_the_outcome() {
    let leasehold = Leasehold::new();
    let output = logged(&leasehold, "debug", "--json a");
    let stderr = text(&output.stderr);
    let lines: Vec<Value> = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    let (acquired, released, outcome) = (&lines[0], &lines[1], &lines[2]);
    assert_eq!(
        (&acquired["outcome"], &acquired["event"], &acquired["name"]),
        (&"log".into(), &"acquired".into(), &"a".into())
    );
    assert_eq!((&released["event"], &released["level"]), (&"released".into(), &"debug".into()));
    assert_eq!((&outcome["outcome"], &outcome["token"]), (&"ended".into(), &acquired["token"]));
}

#[test]
fn an_unknown_level_is_refused_with_those_that_are_known() {
    let leasehold = Leasehold::new();
    let output = logged(&leasehold, "loud", "a");
    let stderr = text(&output.stderr);
    assert_eq!(code(output.status), 64, "{stderr}");
    for word in ["loud", "off, error, warn, info or debug", "LEASEHOLD_LOG"] {
        assert!(stderr.contains(word), "{word:?} is missing in: {stderr}");
    }
    let output = logged(&leasehold, "loud", "--json a");
    assert_eq!((code(output.status), &report(&output)["outcome"]), (64, &"failed".into()));
    let help = text(&leasehold.command("run --help").finish().stdout);
    assert!(help.contains("LEASEHOLD_LOG") && help.contains("off, error, warn, info or debug"), "{help}");
}

/// A server that is stopped under a held lock is reported, and so is its return. The password is not.
#[test]
fn a_store_that_is_away_and_back_is_logged() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start_with(test_support::RedisOptions::default().require_password("sesame"));
    let log = leasehold.scratch.file("log");
    let mut command =
        leasehold.script("--ttl 6s --grace 1s a", "echo held > held; while [ ! -e done ]; do sleep 0.02; done");
    command.env("LEASEHOLD_URL", server.url()).env("LEASEHOLD_LOG", "info");
    command.stdout(std::process::Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    let running = Running::started(command);
    leasehold.scratch.text_of("held");
    let said = || std::fs::read_to_string(&log).unwrap();
    server.stop();
    wait_for("the store to be reported away", || {
        said().contains("warn: the store is unavailable: redis").then_some(())
    });
    server.resume();
    wait_for("the store to be reported back", || said().contains("info: the store is available again").then_some(()));
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(running.end().status), 0, "{}", said());
    assert!(!said().contains("sesame"), "{}", said());
}
