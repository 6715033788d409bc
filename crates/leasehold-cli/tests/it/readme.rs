//! The session at the top of the README is what a terminal shows, except for numbers and the name of the machine.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;
use test_support::Finish;
use test_support::pages::blocks_in;

use crate::support::leasehold::{Leasehold, Running, text};
use crate::support::path_with_leasehold;

/// The output without what differs between runs: every number is `0`, and columns are one blank apart.
fn as_seen(output: &str) -> String {
    let output = Regex::new(r"pid \d+ on \S+").unwrap().replace_all(output, "pid 0 on here");
    let output = Regex::new(r"\d+").unwrap().replace_all(&output, "0");
    output.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line, run to its end by a shell in the directory of the test.
fn shell(leasehold: &Leasehold, line: &str) -> Command {
    let mut command = leasehold.program("sh");
    command.args(["-c", &format!("exec {line}")]).env("PATH", path_with_leasehold());
    command
}

/// Starts a line that the shell runs in the background, and returns its first output.
fn in_background(leasehold: &Leasehold, line: &str) -> (Running, String) {
    let output = File::create(leasehold.scratch.file("output")).unwrap();
    let mut command = shell(leasehold, line);
    command.stdout(output).stderr(Stdio::null());
    (Running::started(command), leasehold.scratch.text_of("output"))
}

#[test]
fn the_session_of_the_readme_is_what_a_terminal_shows() {
    let leasehold = Leasehold::new();
    let script = "echo \"deploying under token $LEASEHOLD_FENCE\"; exec sleep 60";
    fs::write(leasehold.scratch.file("deploy.sh"), script).unwrap();
    let blocks = blocks_in("text");
    let session = blocks.iter().find(|block| block.page == Path::new("README.md")).unwrap();
    let mut background = Vec::new();
    let lines: Vec<_> = session.code.split("$ leasehold").skip(1).collect();
    assert_eq!(lines.len(), 3);
    for (line, shown) in lines.into_iter().map(|line| line.split_once('\n').unwrap()) {
        let command = format!("leasehold{line}").replace("./deploy.sh", "sh deploy.sh");
        let seen = if let Some(command) = command.strip_suffix(" &") {
            let (running, seen) = in_background(&leasehold, command);
            background.push(running);
            seen
        } else {
            let output = shell(&leasehold, &command).finish();
            text(&output.stdout) + &text(&output.stderr)
        };
        assert_eq!(as_seen(&seen), as_seen(shown), "{command}");
    }
}
