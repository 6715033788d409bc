//! Who has the terminal while a command runs. `script` (package `bsdutils`) makes the terminal.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where it cannot go on")]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::Scratch;
use support::leasehold::text;

/// Runs a shell script on a terminal of its own and types into it, a little later each time.
fn on_a_terminal(script: &str, typed: &[&str]) -> String {
    let scratch = Scratch::new();
    let binaries = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap().display();
    let mut session = Command::new("script")
        .args(["-qec", script, "/dev/null"])
        .env("PATH", format!("{binaries}:{}", std::env::var("PATH").unwrap()))
        .env("XDG_STATE_HOME", scratch.path())
        .env("SHELL", "/bin/sh")
        .env_remove("LEASEHOLD_URL")
        .env_remove("LEASEHOLD_HELD")
        .current_dir(scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script is needed: apt-get install bsdutils");
    let mut keyboard = session.stdin.take().unwrap();
    for keys in typed {
        scratch.text_of("ready");
        std::fs::remove_file(scratch.file("ready")).unwrap();
        // What says that it is ready has yet to begin to read.
        std::thread::sleep(Duration::from_millis(200));
        keyboard.write_all(keys.as_bytes()).unwrap();
    }
    text(&session.wait_with_output().unwrap().stdout)
}

#[test]
fn the_command_reads_from_the_terminal_and_gives_it_back() {
    let screen = on_a_terminal(
        "leasehold run a -- sh -c 'echo r > ready; read line; echo got $line'; echo r > ready; read more; echo then $more",
        &["first\n", "second\n"],
    );
    assert!(screen.contains("got first") && screen.contains("then second"), "{screen}");
}

#[test]
fn control_c_reaches_the_command() {
    let screen = on_a_terminal("leasehold run a -- sh -c 'echo r > ready; sleep 60'; echo code $?", &["\x03"]);
    assert!(screen.contains("code 130"), "{screen}");
}

#[test]
fn a_command_that_is_suspended_is_told_of_and_can_be_ended() {
    let screen = on_a_terminal(
        "trap : INT; (while ! grep -q State:.T /proc/$(cat pid)/status; do sleep 0.05; done; echo r > ready) 2> /dev/null & \
         leasehold run a -- sh -c 'echo $$ > pid; echo r > ready; sleep 60'; echo code $?",
        &["\x1a", "\x03"],
    );
    assert!(
        screen.contains("was stopped") && screen.contains("end it with Ctrl-C") && screen.contains("code 130"),
        "{screen}"
    );
}

#[test]
fn who_waits_on_a_terminal_sees_who_holds_the_lock() {
    let screen = on_a_terminal(
        "trap : INT; leasehold run --why nightly a -- sh -c 'echo r > held; sleep 60' < /dev/null & holder=$!; \
         while [ ! -e held ]; do sleep 0.05; done; (sleep 1.5; echo r > ready) & \
         leasehold run -w 5m a -- true; echo code $?; kill $holder; wait",
        &["\x03"],
    );
    assert!(screen.contains("waiting for a, held by pid") && screen.contains("nightly"), "{screen}");
    assert!(screen.contains("of at most 5m"), "{screen}");
    assert!(screen.contains("code 130"), "{screen}");
}
