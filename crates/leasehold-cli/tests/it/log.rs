//! `LEASEHOLD_LOG` and `--log`: what happens to the lock, on standard error.

use std::process::Output;
use std::time::Duration;

use crate::messages::waited;
use crate::support::leasehold::{Leasehold, Running, code, report, text};
use crate::support::wait_for;
use serde_json::Value;
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
    assert_eq!(lines.len(), 3, "{stderr}");
    let all = ["debug: the store is sqlite:", "debug: acquired \"a\" (token ", "debug: released \"a\" (token "];
    for (line, words) in lines.iter().zip(all) {
        assert!(line.starts_with("leasehold: 20") && line.contains(words), "{stderr}");
    }
    let by_option = text(&leasehold.run("--log debug a", "true").stderr);
    assert_eq!(by_option.lines().count(), 3, "{by_option}");
}

#[test]
fn as_json_each_line_is_an_object_and_the_last_is_the_outcome() {
    let leasehold = Leasehold::new();
    let output = logged(&leasehold, "debug", "--json a");
    let stderr = text(&output.stderr);
    let lines: Vec<Value> = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4, "{stderr}");
    assert_eq!(lines[0]["event"], "store");
    let (acquired, released, outcome) = (&lines[1], &lines[2], &lines[3]);
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
    assert!(stderr.contains("there is no such level; use off"), "{stderr}");
    let output = logged(&leasehold, "loud", "--json a");
    assert_eq!((code(output.status), &report(&output)["outcome"]), (64, &"failed".into()));
    let help = text(&leasehold.command("run --help").finish().stdout);
    assert!(help.contains("LEASEHOLD_LOG") && help.contains("off, error, warn, info or debug"), "{help}");
}

/// How often a text occurs.
#[track_caller]
fn occurs(text: &str, part: &str, times: usize) {
    assert_eq!(text.matches(part).count(), times, "{part:?} in: {text}");
}

#[test]
fn a_wait_is_logged_with_the_holder_and_no_line_is_printed_twice() {
    let leasehold = Leasehold::new();
    let _holder = leasehold.start("a", "echo held > held; while [ ! -e done ]; do sleep 0.02; done", "held");
    for options in ["-w 2s a", "-v -w 2s a", "-w 2s -E 0 a"] {
        let stderr = text(&logged(&leasehold, "debug", options).stderr);
        occurs(&stderr, "debug: waiting for a, held by pid", 1);
        occurs(&stderr, "waiting for a", 1);
        occurs(&stderr, "debug: did not get \"a\" after ", 1);
        let (_, waited) = stderr.split_once("did not get \"a\" after ").unwrap();
        let (seconds, _) = waited.split_once("s: pid").unwrap();
        assert!(seconds.parse::<f64>().unwrap() >= 2.0, "{stderr}");
    }
    let stderr = text(&logged(&leasehold, "debug", "--json -w 2s a").stderr);
    let events: Vec<Value> = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[1]["event"], &events[1]["name"]), (&"waiting".into(), &"a".into()), "{stderr}");
    assert_eq!(text(&logged(&leasehold, "info", "-q -w 1s a").stderr), "");
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();

    let stderr = text(&logged(&leasehold, "debug", "-v b").stderr);
    occurs(&stderr, "token", 2);
    occurs(&stderr, "released", 1);
    let stderr = text(&logged(&leasehold, "info", "-v b").stderr);
    occurs(&stderr, "got b with token", 1);
}

#[test]
fn a_wait_for_a_store_that_is_away_is_logged_and_counted() {
    let leasehold = Leasehold::new();
    let stderr = text(&logged(&leasehold, "debug", "-w 2s --url redis://127.0.0.1:1 a").stderr);
    occurs(&stderr, "debug: waiting for a, redis", 1);
    occurs(&stderr, "leasehold: waited ", 1);
    assert!(waited(&stderr) >= Duration::from_secs(2), "{stderr}");
    occurs(&stderr, " for a, but redis", 1);
}

/// The command is ended before the lease ends, so the library does not find the loss.
#[test]
fn a_loss_is_logged_once_and_before_what_follows_from_it() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let url = server.url();
    let mut command = leasehold.script(&format!("--ttl 4s --url {url} a"), "echo held > held; exec sleep 60");
    command.env("LEASEHOLD_LOG", "info");
    let running = Running::spawn(command);
    leasehold.scratch.text_of("held");
    server.stop();
    let output = running.end();
    let stderr = text(&output.stderr);
    assert_eq!(code(output.status), 76, "{stderr}");
    occurs(&stderr, "error: lost \"a\" (token ", 1);
    let parts = ["error: lost \"a\"", "the lease was lost before the command ended", "a may not have been released"];
    let places = parts.map(|part| stderr.find(part).unwrap_or_else(|| panic!("{part:?} is missing in: {stderr}")));
    assert!(places.is_sorted(), "{stderr}");
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
