//! The messages of `leasehold`, and when it prints none.

use std::time::Duration;

use crate::support::leasehold::{Leasehold, Running, code, report, text};
use test_support::{Finish, RedisOptions, RedisServer};

/// Holds a lock until the file `done` is there.
const HOLD: &str = "echo held > held; while [ ! -e done ]; do sleep 0.02; done";

/// How long a run waited in vain, as it says.
#[track_caller]
pub(crate) fn waited(said: &str) -> Duration {
    let told = said.split_once("waited ").and_then(|(_, rest)| rest.split_once(" for "));
    let (time, _) = told.unwrap_or_else(|| panic!("it does not say for how long it waited: {said}"));
    humantime::parse_duration(time).unwrap()
}

#[test]
fn a_skip_that_exits_with_0_prints_nothing_but_errors() {
    let leasehold = Leasehold::new();
    let _holder = leasehold.start("a", HOLD, "held");
    for options in ["-n -E 0 a", "-w 3s -E 0 a", "-q -n -E 0 a"] {
        let output = leasehold.run(options, "true");
        assert_eq!((code(output.status), text(&output.stderr).as_str()), (0, ""), "{options}");
    }
    let verbose = text(&leasehold.run("-v -n -E 0 a", "true").stderr);
    assert!(verbose.contains("a is held by"), "{verbose}");
    assert_eq!(report(&leasehold.run("--json -n -E 0 a", "true"))["outcome"], "busy");
    let unreachable = leasehold.run("-n -E 0 --url redis://127.0.0.1:1 a", "true");
    assert_eq!(code(unreachable.status), 69);
    assert!(!unreachable.stderr.is_empty());
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

#[test]
fn a_long_wait_is_reported_once_in_a_log() {
    let leasehold = Leasehold::new();
    let _holder = leasehold.start("--why nightly a", HOLD, "held");
    let waiters = ["-w 6s a", "-w 6s -q a", "-w 6s -E 0 a"].map(|line| Running::spawn(leasehold.script(line, "true")));
    let [told, quiet, skipping] = waiters.map(|waiter| text(&waiter.end().stderr));
    assert_eq!(told.matches("waiting for a, held by pid").count(), 1, "{told}");
    assert!(waited(&told) >= Duration::from_secs(6), "{told}");
    assert_eq!((quiet.as_str(), skipping.as_str()), ("", ""));
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

#[test]
fn an_error_suggests_what_was_probably_meant() {
    let leasehold = Leasehold::new();
    let said = |line: &[&str], expected: i32| {
        let output = leasehold.command("run").args(line).finish();
        assert_eq!(code(output.status), expected, "{line:?}");
        text(&output.stderr)
    };
    assert!(said(&["./report.sh"], 64).contains("the first argument is the name of the lock"));
    assert!(said(&["a", "--", "echo hi && echo there"], 127).contains("use sh -c '...'"));
    assert!(said(&["a", "--", "/tmp"], 126).contains("is a directory"));
    let redlock = leasehold.command("redlock").finish();
    assert_eq!(code(redlock.status), 64);
    assert!(text(&redlock.stderr).contains("Show the state of the nodes"));
}

#[test]
fn quiet_is_silent_and_verbose_tells_a_story() {
    let leasehold = Leasehold::new();
    let quiet = leasehold.command("run -q a -- ./nowhere").finish();
    assert_eq!((code(quiet.status), text(&quiet.stderr).as_str()), (127, ""));
    let verbose = text(&leasehold.run("-v a", "true").stderr);
    assert!(verbose.contains("got a with token") && verbose.contains("released a"), "{verbose}");
    assert!(!verbose.contains('\x1b'), "colour is for terminals");
}

#[test]
fn verbose_and_reports_name_the_store_without_its_password() {
    let leasehold = Leasehold::new();
    let own = format!("sqlite:{}", leasehold.database().display());
    let verbose = text(&leasehold.run("-v a", "true").stderr);
    assert!(verbose.contains(&format!("the store is {own}, the default")), "{verbose}");
    assert_eq!(report(&leasehold.run("--json a", "true"))["store"], own);
    let debug = text(&leasehold.run("-v --log debug a", "true").stderr);
    assert_eq!(debug.matches(&own).count(), 1, "{debug}");
    let server = RedisServer::start_with(RedisOptions::default().require_password("sesame"));
    let shown = format!("redis://***@127.0.0.1:{}", server.port());
    let url = format!("redis://:sesame@127.0.0.1:{}", server.port());
    let output = leasehold.script("-v --report out a", "true").env("LEASEHOLD_URL", &url).finish();
    let (verbose, written) = (text(&output.stderr), leasehold.scratch.text_of("out"));
    assert!(verbose.contains(&format!("the store is {shown}")), "{verbose}");
    assert!(written.contains(&format!("\"store\":\"{shown}")), "{written}");
    assert!(!(verbose + &written).contains("sesame"));
}

/// A name and a reason could otherwise look like those of another lock.
#[test]
fn characters_that_cannot_be_seen_are_written_out() {
    let leasehold = Leasehold::new();
    let (name, why) = ("ev\u{202e}il\u{200b}\\u{200b}\u{1d173}", "a\u{2066}b");
    let run = |options: &str, command: &[&str]| {
        let mut line = leasehold.command(&format!("run {options}"));
        line.args(["--why", why, name, "--"]).args(command);
        line
    };
    let _holder = Running::spawn(run("", &["sh", "-c", "echo > held; sleep 600"]));
    leasehold.scratch.text_of("held");
    let shown = leasehold.command("ls").finish();
    let busy = run("-v --log debug -n", &["true"]).finish();
    let mut watch = leasehold.command("watch");
    let watched = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let waited = run("-w 5s", &["true"]).finish();
    let ls_json = leasehold.command("ls --json").finish();
    let busy_json = run("--json --log debug --report out -n", &["true"]).finish();
    rustix::process::kill_process(rustix::process::Pid::from_child(&watched), rustix::process::Signal::TERM).unwrap();
    let watched = test_support::bounds::output_of(watched, "leasehold watch");
    let written = leasehold.scratch.text_of("out");
    let texts = [&shown.stdout, &busy.stderr, &watched.stdout, &waited.stderr].map(|bytes| text(bytes));
    for text in &texts {
        assert!(text.contains("ev\\u{202e}il\\u{200b}\\\\u{200b}\\u{1d173}"), "{text}");
    }
    let jsons = [text(&ls_json.stdout), text(&busy_json.stderr), written];
    for text in &jsons {
        assert!(text.contains("ev\\u202eil\\u200b\\\\u{200b}\\ud834\\udd73"), "{text}");
    }
    for text in texts.iter().chain(&jsons) {
        assert!(!text.contains(['\u{202e}', '\u{200b}', '\u{2066}', '\u{1d173}']), "{}", text.escape_unicode());
    }
    let list: serde_json::Value = serde_json::from_slice(&ls_json.stdout).unwrap();
    assert_eq!((list[0]["name"].as_str(), list[0]["why"].as_str()), (Some(name), Some(why)), "the JSON means the same");
}

/// Several machines that each use a file of their own each run the slot, and each have a leader.
#[test]
fn a_store_of_this_machine_is_warned_of_where_machines_should_meet() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let warning = "excludes this machine's processes only";
    let slot = "2099-11-21T03:00";
    for (line, times) in [
        (format!("run --slot {slot} a -- true"), 1),
        (format!("run --slot {slot} --url {} b -- true", leasehold.url()), 1),
        ("elect a -- true".to_owned(), 1),
        (format!("run -q --slot {slot} c -- true"), 0),
        (format!("run --slot {slot} --url {} a -- true", server.url()), 0),
        (format!("elect --url {} a -- true", server.url()), 0),
        ("run a -- true".to_owned(), 0),
    ] {
        let output = leasehold.command(&line).finish();
        let said = text(&output.stderr);
        assert_eq!((code(output.status), said.matches(warning).count()), (0, times), "{line}: {said}");
        assert!(times == 0 || said.contains("--url"), "{line}: {said}");
    }
}

#[test]
fn too_few_replicas_are_a_store_that_cannot_serve() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let refused = leasehold.run(&format!("-n --url {}?replicas=2 a", server.url()), "true");
    let told = text(&refused.stderr);
    assert_eq!(code(refused.status), 69, "{told}");
    assert!(
        told.contains("has only 0 of the 2 connected replicas") && told.contains("0 of 2 replicas acknowledged it"),
        "{told}"
    );
    let free = leasehold.run(&format!("-n --url {} a", server.url()), "true");
    assert_eq!(code(free.status), 0, "the grant was given back: {}", text(&free.stderr));
    let wrong = leasehold.run(&format!("--url {}?replicas=all a", server.url()), "true");
    assert_eq!(code(wrong.status), 78, "{}", text(&wrong.stderr));
}

#[test]
fn a_redis_that_may_drop_held_locks_is_warned_of_once() {
    let leasehold = Leasehold::new();
    let arguments = ["--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"];
    let server = RedisServer::start_with(RedisOptions::default().arguments(&arguments));
    let told = leasehold.run(&format!("--url {} a", server.url()), "true");
    assert_eq!(code(told.status), 0);
    assert_eq!(text(&told.stderr).matches("maxmemory-policy is volatile-lru").count(), 1, "{}", text(&told.stderr));
    let allowed = leasehold.run(&format!("--url {}?eviction=allow a", server.url()), "true");
    assert_eq!((code(allowed.status), text(&allowed.stderr).as_str()), (0, ""));
}
