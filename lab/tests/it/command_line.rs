//! What all scenes have in common: the help, colours, and failures.

use std::process::{Command, Stdio};

use test_support::Finish;
use test_support::bounds::output_of;

use crate::support::{Lab, code, text};

#[test]
fn without_a_scene_the_scenes_are_listed() {
    let lab = Lab::new();
    let output = lab.command("").finish();
    assert_eq!(code(output.status), 64);
    assert!(text(&output.stderr).contains("cargo xtask lab account"), "{}", text(&output.stderr));
    let help = lab.command("--help").finish();
    assert_eq!((code(help.status), text(&help.stdout).contains("\n  worker")), (0, false), "{}", text(&help.stdout));
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure_that_says_where_to_look() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let line = "account --workers 2 --deposits 1";
    let lab = Lab::new();
    let child = lab.command(line).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = output_of(child, line);
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 125, "{said}");
    assert!(said.contains("check the file that it is redirected to"), "{said}");
}

/// `script` (package `bsdutils`) makes the terminal.
#[test]
fn a_scene_is_coloured_on_a_terminal() {
    let lab = Lab::new();
    let line = format!("TERM=xterm {} cache --callers 8", env!("CARGO_BIN_EXE_leasehold-lab"));
    let mut command = Command::new("script");
    let scene = lab.command("");
    let environment = scene.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)));
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let shown = text(&command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).finish().stdout);
    assert!(shown.contains("\x1b[1m 1  no lock\x1b[0m"), "{shown}");
    assert!(shown.contains("\x1b[31mcalls "), "{shown}");
}
