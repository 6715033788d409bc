//! What `leasehold` prints: tables on terminals of any size, JSON whatever happens, reports in files.

use std::process::Stdio;

use crate::support;
use crate::support::leasehold::{Leasehold, Running, code, report, text};
use crate::support::wait_for;
use serde_json::Value;
use test_support::bounds::output_of;
use test_support::{Finish, RedisServer};

/// Holds a lock until the file `done` is there.
const HOLD: &str = "echo held > held; while [ ! -e done ]; do sleep 0.02; done";

/// Runs a script on a terminal of its own. `script` (package `bsdutils`) makes one without a size.
fn on_a_terminal(leasehold: &Leasehold, script: &str) -> String {
    let mut command = leasehold.program("script");
    command.args(["-qec", script, "/dev/null"]).env_remove("COLUMNS").env("SHELL", "/bin/sh");
    command.env("PATH", support::path_with_leasehold());
    text(&Running::spawn(command).end().stdout)
}

#[test]
fn tables_fit_terminals_of_any_size() {
    let leasehold = Leasehold::new();
    let _holder = leasehold.start("--why the-books-of-the-year a", HOLD, "held");
    let token = leasehold.json("show a")["token"].to_string();
    for (setup, left_out) in [
        ("stty rows 0 cols 0", None),
        ("stty cols 120", None),
        ("stty cols 70", Some("left out: REMAINING; see --json")),
        ("stty cols 60", Some("left out: TOKEN, REMAINING; see --json")),
        ("stty cols 120; export COLUMNS=60", Some("left out: TOKEN, REMAINING; see --json")),
        ("stty cols 60; export COLUMNS=120", None),
        ("stty cols 20", Some("left out")),
    ] {
        let screen = on_a_terminal(&leasehold, &format!("{setup}; leasehold ls"));
        let lines: Vec<_> = screen.lines().collect();
        assert!(lines[0].starts_with("NAME"), "{setup}: {screen}");
        assert_eq!(lines[1].split_whitespace().next(), Some("a"), "{setup}: {screen}");
        assert_eq!(lines[0].contains("REMAINING"), left_out.is_none(), "{setup}: {screen}");
        assert_eq!(lines[0].contains("TOKEN"), lines[1].contains(&token), "{setup}: {screen}");
        match left_out {
            None => assert_eq!(lines.len(), 2, "{setup}: {screen}"),
            Some(said) => assert!(lines[2].contains(said), "{setup}: {screen}"),
        }
    }
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

/// The fields are a promise, and the help is where they are listed.
#[test]
fn the_help_of_show_names_each_field_of_its_json() {
    let leasehold = Leasehold::new();
    let _holder = leasehold.start("a", HOLD, "held");
    let shown = leasehold.json("show a");
    let help = text(&leasehold.command("show --help").finish().stdout);
    let words: Vec<_> = help.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let fields = [&shown, &shown["holders"][0]].into_iter().flat_map(|object| object.as_object().unwrap().keys());
    let missing: Vec<_> = fields.filter(|field| !words.contains(&field.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?} of {shown} are not in: {help}");
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

#[test]
fn json_stays_json_when_something_fails() {
    let leasehold = Leasehold::new();
    let gone = "redis://127.0.0.1:1";
    for (line, expected, word) in [
        ("run --json --ttl soon a -- true".to_owned(), 64, "soon"),
        ("run --json -n -- make deploy".to_owned(), 64, "no name before"),
        ("ls --json --strange".to_owned(), 64, "--strange"),
        (format!("ls --json --url {gone}"), 69, "refused"),
        ("show --json --url redsi://h a".to_owned(), 78, "redsi"),
        ("redlock status --json redlock://h".to_owned(), 78, "node"),
    ] {
        let output = leasehold.command(&line).finish();
        assert_eq!(code(output.status), expected, "{line}");
        let failure: Value = serde_json::from_slice(&output.stderr).unwrap_or_else(|_| panic!("{line}: {output:?}"));
        assert_eq!(failure["exit"], expected, "{line}");
        assert_eq!(failure["outcome"], "failed", "{line}");
        assert!(failure["message"].as_str().unwrap().contains(word), "{line}: {failure}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure_that_says_where_to_look() {
    let leasehold = Leasehold::new();
    let _holder = leasehold.start("a", HOLD, "held");
    for line in ["ls", "ls --json", "ls --watch", "show a", "watch", "watch --json", "doctor", "man"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let child = leasehold.command(line).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let output = output_of(child, line);
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 125, "{line}: {said}");
        assert!(said.contains("check the file that it is redirected to"), "{line}: {said}");
    }
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

#[test]
fn a_report_has_a_file_of_its_own() {
    let leasehold = Leasehold::new();
    let output = leasehold.run("--report outcome.json a", "echo noise >&2; exit 3");
    assert_eq!((code(output.status), text(&output.stderr).as_str()), (3, "noise\n"));
    let read = || -> Value { serde_json::from_str(&leasehold.scratch.text_of("outcome.json")).unwrap() };
    assert_eq!((&read()["outcome"], &read()["exit"]), (&"ended".into(), &3.into()));
    let both = leasehold.run("--json --report outcome.json a", "true");
    assert_eq!(report(&both), read());
    let refused = leasehold.run("--report no/such/folder/file a", "touch ran");
    assert_eq!(code(refused.status), 78);
    assert!(text(&refused.stderr).contains("no/such/folder/file"));
    assert!(!leasehold.scratch.file("ran").exists());
}

#[test]
fn a_report_is_of_this_run_even_if_the_command_line_makes_no_sense() {
    let leasehold = Leasehold::new();
    assert_eq!(code(leasehold.run("--report outcome.json a", "true").status), 0);
    let output = leasehold.run("--ttl soon --report outcome.json a", "true");
    assert_eq!(code(output.status), 64);
    let report: Value = serde_json::from_str(&leasehold.scratch.text_of("outcome.json")).unwrap();
    assert_eq!((&report["outcome"], &report["exit"]), (&"failed".into(), &64.into()));
    assert!(report["message"].as_str().unwrap().contains("soon"), "{report}");
}

#[test]
fn nobody_is_told_to_wait_for_a_key_that_never_expires() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let () = server.command(&["SET", "a", "1"]);
    let busy = text(&leasehold.run(&format!("-n --url {} a", server.url()), "true").stderr);
    assert!(busy.contains("never expires") && busy.contains("delete it") && !busy.contains("-w"), "{busy}");
    let waited = text(&leasehold.run(&format!("-w 1s --url {} a", server.url()), "true").stderr);
    assert!(waited.contains("waited 1s for a"), "{waited}");
}

#[test]
fn the_lock_of_another_library_is_listed_while_somebody_waits_for_it() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let () = server.command(&["SET", "theirs", "secret", "PX", "60000"]);
    let () = server.command(&["SET", "no-lock", "some text"]);
    let listed = || leasehold.json(&format!("ls --url {}", server.url()));
    assert_eq!(listed(), Value::Array(Vec::new()), "a string may be anything");
    let _waiter = Running::spawn(leasehold.script(&format!("--url {} theirs", server.url()), "true"));
    let lock = wait_for("the lock to be listed", || listed().get(0).cloned());
    assert_eq!((&lock["name"], &lock["leasehold"], &lock["waiters"]), (&"theirs".into(), &false.into(), &1.into()));
    assert_eq!(listed().as_array().map(Vec::len), Some(1));
}
