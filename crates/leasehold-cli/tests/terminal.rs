//! Who has the terminal while a command runs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where it cannot go on")]

mod support;

use support::session::{PROMPT, Session};

#[test]
fn the_command_reads_from_the_terminal_and_gives_it_back() {
    let mut session =
        Session::of_script("leasehold run a -- sh -c 'echo go; read line; echo got $line'; read more; echo then $more");
    session.shows("go");
    session.types("first\n");
    session.shows("got first");
    session.types("second\n");
    session.shows("then second");
    session.end();
}

#[test]
fn control_c_reaches_the_command() {
    let mut session = Session::of_script("leasehold run a -- sh -c 'echo go; exec sleep 60'; echo code $?");
    session.shows("go");
    session.types("\x03");
    session.shows("code 130");
    session.end();
}

#[test]
fn a_command_that_is_suspended_is_told_of_and_can_be_ended() {
    // A shell that is just starting a command is not stopped before that command goes on, hence `exec`.
    let mut session = Session::of_script("trap : INT; leasehold run a -- sh -c 'echo go; exec sleep 60'; echo code $?");
    session.shows("go");
    session.types("\x1a");
    session.shows("was stopped");
    session.shows("end it with Ctrl-C");
    session.types("\x03");
    session.shows("code 130");
    session.end();
}

#[test]
fn who_waits_on_a_terminal_sees_who_holds_the_lock() {
    let mut session = Session::of_script(
        "trap : INT; leasehold run --why nightly a -- sh -c 'echo r > held; sleep 60' < /dev/null & holder=$!; \
         while [ ! -e held ]; do sleep 0.05; done; leasehold run -w 5m a -- true; echo code $?; kill $holder; wait",
    );
    session.shows("waiting for a, held by pid");
    session.shows("nightly");
    session.shows("of at most 5m");
    session.types("\x03");
    session.shows("code 130");
    session.end();
}

#[test]
fn a_job_in_the_background_leaves_the_terminal_to_the_shell() {
    let mut session = Session::of_bash();
    session.types("leasehold run a -- sh -c 'echo r > ran; while [ ! -e done ]; do sleep 0.02; done; exit 3' &\n");
    session.scratch.text_of("ran");
    for word in ["one", "two"] {
        session.types(&format!("echo then ''{word}\n"));
        session.shows(&format!("then {word}"));
        session.shows(PROMPT);
    }
    session.types("touch done; wait $!; echo code $?\n");
    session.shows("code 3");
    session.types("read line; echo got $line\n");
    session.types("some text\n");
    session.shows("got some text");
    session.exit();
}
