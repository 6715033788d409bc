//! Which process has the terminal while a command runs.

use crate::support::session::{PROMPT, Session};
use crate::support::wait_for_death;
use test_support::RedisServer;

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
    let mut session = Session::of_script("trap : INT; leasehold run a -- sh -c 'echo go; exec sleep 60'; echo code $?");
    session.shows("go");
    session.types("\x03");
    session.shows("code 130");
    session.end();
}

const LOOP: &str = "while :; do leasehold run a -- sh -c 'echo g''o; exec sleep 60'; done";

#[test]
fn control_c_ends_a_loop_that_was_typed() {
    let mut session = Session::of_bash();
    for key in ["\x03", "\x1c"] {
        session.types(&format!("{LOOP}\n"));
        session.shows("go\r\n");
        session.types(key);
        // A shell continues after Ctrl-\ in any loop.
        if key == "\x1c" {
            session.shows("go\r\n");
            session.types("\x03");
        }
        session.shows(PROMPT);
        session.types("echo code ''$?\n");
        session.shows("code 130");
        session.shows(PROMPT);
    }
    session.exit();
}

#[test]
fn control_c_ends_the_loop_of_a_script() {
    for shell in ["sh", "bash"] {
        let mut session = Session::of_script(&format!("exec {shell} -c \"{LOOP}\""));
        session.shows("go\r\n");
        session.types("\x03");
        session.end();
    }
}

#[test]
fn control_c_ends_a_loop_that_waits_for_a_lock() {
    let mut session = Session::of_bash();
    session.types("leasehold run a -- sh -c 'echo h > held; exec sleep 60' < /dev/null &\n");
    session.scratch.text_of("held");
    session.shows(PROMPT);
    session.types("while :; do leasehold run a -- true; done\n");
    session.shows("waiting for a, held by pid");
    session.types("\x03");
    session.shows("gave up waiting on SIGINT");
    session.shows(PROMPT);
    session.types("echo code ''$?; kill %1\n");
    session.shows("code 130");
    session.exit();
}

#[test]
fn a_suspended_command_is_reported_and_can_be_ended() {
    // A shell cannot be stopped while it starts a command, hence `exec`.
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
fn a_waiter_on_a_terminal_sees_the_holder() {
    let mut session = Session::of_script(
        "stty cols 200; trap : INT; leasehold run --why nightly a -- sh -c 'echo r > held; sleep 60' < /dev/null & holder=$!; \
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
fn a_waiter_that_replicas_do_not_confirm_is_not_shown_as_its_own_obstacle() {
    let server = RedisServer::start();
    let run = format!("leasehold run --url '{}?replicas=1' -w 5m a -- true", server.url());
    let mut session = Session::of_script(&format!("trap : INT; {run}; echo code $?"));
    session.shows("waiting for a, granted to this process, but not confirmed yet");
    session.types("\x03");
    session.shows("code 130");
    assert!(!session.end().contains("held by"));
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

/// The lease's ttl: short, so that a test sees it renewed. The commands that are stopped start none, since a shell cannot be
/// stopped while it does.
const RUN: &str = "leasehold run --ttl 3s a --";

#[test]
fn control_z_gives_the_terminal_to_the_shell_and_the_lease_is_renewed() {
    let mut session = Session::of_bash();
    session.types(&format!("{RUN} sh -c 'echo g''o; read line; echo got $line; exit 3'\n"));
    session.shows("go\r\n");
    session.types("\x1a");
    session.shows("was stopped");
    session.shows("Stopped");
    session.shows(PROMPT);
    // Longer than the ttl: the lease would have ended.
    session.types("leasehold run -n a -- true; echo busy $?; sleep 4; leasehold run -n a -- true; echo still $?\n");
    session.shows("busy 75");
    session.shows("still 75");
    session.shows(PROMPT);
    session.types("fg\n");
    session.shows("fg\r\n");
    session.types("some text\n");
    session.shows("got some text");
    session.shows(PROMPT);
    session.types("echo code $?\n");
    session.shows("code 3");
    session.shows(PROMPT);
    let screen = session.exit();
    assert!(!screen.contains("lost"), "{screen}");
}

#[test]
fn a_stopped_job_goes_on_in_the_background_and_comes_to_the_foreground() {
    let mut session = Session::of_bash();
    session.types(&format!("mkfifo on; {RUN} sh -c 'echo g''o; read on < on; read line; echo got $line'\n"));
    session.shows("go\r\n");
    session.types("\x1a");
    session.shows("Stopped");
    session.shows(PROMPT);
    session.types("bg\n");
    session.shows(PROMPT);
    // A background process that reads from the terminal is stopped.
    session.types("echo > on\n");
    session.shows("was stopped");
    // It says so just before it stops.
    session.types("until jobs -s | grep -q leasehold; do sleep 0.1; done; fg\n");
    session.shows("fg\r\n");
    session.types("some text\n");
    session.shows("got some text");
    session.shows(PROMPT);
    session.exit();
}

#[test]
fn a_waiter_can_be_stopped_and_continued() {
    let mut session = Session::of_bash();
    session.types("leasehold run a -- sh -c 'echo h > held; while [ ! -e done ]; do sleep 0.05; done' < /dev/null &\n");
    session.scratch.text_of("held");
    session.shows(PROMPT);
    session.types("leasehold run -w 50s a -- sh -c 'echo r''an'\n");
    session.shows("waiting for a, held by pid");
    session.types("\x1a");
    session.shows("Stopped");
    session.shows(PROMPT);
    session.types("touch done; wait %1; echo fr''ee\n");
    session.shows("free");
    session.shows(PROMPT);
    session.types("fg\n");
    session.shows("ran");
    session.shows(PROMPT);
    session.exit();
}

/// Waits in bash, and without starting anything, until the job in the background catches SIGTSTP, the 20th signal.
const CATCHES: &str = "caught='SigCgt:[[:space:]]*[0-9a-f]*[89a-f][0-9a-f]{4}[[:space:]]'; \
                       until read -rd '' state < /proc/$!/status; [[ $state =~ $caught ]]; do :; done";

/// Before its worker catches signals, while more processes are started, and while the command runs.
#[test]
fn a_job_is_stopped_however_early_control_z_is_typed() {
    let mut session = Session::of_bash();
    for delay in [":", ":", ":", "sleep 0", "sleep 0.01", "sleep 0.02", "sleep 0.04", "sleep 0.08", "sleep 0.15"] {
        session.types(&format!(
            "leasehold run a -- sleep 60 < /dev/null & {CATCHES}; {delay}; kill -TSTP %%; \
             until [ \"$(jobs -s)\" ]; do sleep 0.02; done; echo sto''pped\n"
        ));
        session.shows("stopped\r\n");
        session.shows(PROMPT);
        session.types("kill %%; fg; echo en''ded\n");
        session.shows("ended\r\n");
        session.shows(PROMPT);
    }
    session.exit();
}

#[test]
fn a_front_that_is_killed_takes_the_command_with_it() {
    let mut session = Session::of_bash();
    session.types("leasehold run a -- sh -c 'echo $$ > pid; exec sleep 60' &\n");
    let pids = session.scratch.pids_of("pid");
    session.shows(PROMPT);
    session.types("kill -KILL $!\n");
    wait_for_death(&pids);
    session.exit();
}

/// The front is the process that the shell takes for its job: if others stop it, it leaves the terminal to the shell for good.
#[test]
fn a_foreground_job_that_others_stop_leaves_the_terminal_to_the_shell() {
    let mut session = Session::of_bash();
    session.types("(sleep 1; kill -STOP $(pgrep -o -f 'leasehold ru[n] stopped')) & leasehold run stopped -- sh -c 'echo $$ > pid; sleep 3'\n");
    session.scratch.text_of("pid");
    session.shows("Stopped");
    session.shows(PROMPT);
    wait_for_death(&session.scratch.pids_of("pid"));
    session.types("sleep 1; echo then ''one\n");
    session.shows("then one");
    session.types("fg\n");
    session.shows("fg\r\n");
    session.shows(PROMPT);
    session.exit();
}

#[test]
fn the_rest_of_a_pipeline_keeps_the_terminal() {
    let mut session = Session::of_bash();
    session.types("leasehold run a -- sh -c 'echo from the command' | sh -c 'read line; echo ask''ed; read key < /dev/tty; echo $line, $key'\n");
    session.shows("asked");
    session.types("yes\n");
    session.shows("from the command, yes");
    session.shows(PROMPT);
    session.exit();
}

#[test]
fn a_command_in_a_pipeline_has_the_terminal_when_it_asks_for_it() {
    let mut session = Session::of_bash();
    session.types("leasehold run a -- sh -c 'echo ask''ed > /dev/tty; read key < /dev/tty; echo got $key' | cat\n");
    session.shows("asked");
    session.types("yes\n");
    session.shows("got yes");
    session.shows(PROMPT);
    session.exit();
}

#[test]
fn a_command_that_reads_a_pipe_has_the_terminal_when_it_asks_for_it() {
    let mut session = Session::of_bash();
    session.types(
        "echo data | leasehold run a -- sh -c 'read line; echo ask''ed; read key < /dev/tty; echo $line, $key'\n",
    );
    session.shows("asked");
    session.types("yes\n");
    session.shows("data, yes");
    session.shows(PROMPT);
    session.exit();
}

#[test]
fn control_z_stops_a_command_that_reads_no_terminal() {
    let mut session = Session::of_bash();
    session.types(&format!("mkfifo on; {RUN} sh -c 'echo g''o; read on < on; echo do''ne' < /dev/null\n"));
    session.shows("go\r\n");
    session.types("\x1a");
    session.shows("Stopped");
    session.shows(PROMPT);
    session.types("(echo > on) & fg %1\n");
    session.shows("done");
    session.shows(PROMPT);
    session.exit();
}
