//! The guard process alone, with the test in place of `leasehold run`.

#[allow(dead_code, reason = "the test plays one side only")]
#[path = "../../src/run/channel.rs"]
mod channel;
#[allow(dead_code, reason = "the test plays one side only")]
#[path = "../../src/run/wire.rs"]
mod wire;

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold::clock::{Clock, HostClock, Moment};
use rustix::process::{Pid, Signal, getpgid, getppid, kill_process, setpgid};

use self::channel::Channel;
use self::wire::{Cause, Event, Order};
use crate::command_end::CommandEnd;
use crate::support;
use crate::support::{STUBBORN, Scratch, wait_for, wait_for_death};
use test_support::bounds::{PATIENCE, status_of};

const LEASE: Duration = Duration::from_secs(3);
const GRACE: &str = "500ms";
const MARGIN: &str = "700ms";

/// A guard whose `leasehold run` is the test.
struct Guarded {
    process: Child,
    line: Option<Channel>,
    scratch: Scratch,
    deadline: Moment,
}

impl Guarded {
    fn start(command: &[&str]) -> Self {
        Self::start_under(LEASE, command)
    }

    fn start_under(lease: Duration, command: &[&str]) -> Self {
        let scratch = Scratch::new();
        let (mut line, theirs) = Channel::pair().unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args(["guard-command", "--grace", GRACE, "--margin", MARGIN, "--"])
            .args(command)
            .current_dir(scratch.path())
            .stdin(Stdio::from(theirs))
            .spawn()
            .unwrap();
        let deadline = HostClock.now() + lease;
        let null = File::open("/dev/null").unwrap();
        line.send_with_file(&Order::Deadline(deadline.as_nanos()), null.as_fd()).unwrap();
        Self { process, line: Some(line), scratch, deadline }
    }

    fn shell(script: &str) -> Self {
        Self::start(&["sh", "-c", script])
    }

    fn order(&mut self, order: &Order) {
        self.line.as_mut().unwrap().send(order).unwrap();
    }

    fn extend(&mut self, lease: Duration) {
        self.deadline = HostClock.now() + lease;
        self.order(&Order::Deadline(self.deadline.as_nanos()));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for one kind of event, and skips all others.
    fn await_event(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        let line = self.line.as_mut().unwrap();
        wait_for("an event", || line.receive::<Event>().unwrap().into_iter().find(&wanted))
    }

    fn await_end(&mut self) -> (CommandEnd, Cause) {
        let ended = self.await_event(|event| matches!(event, Event::Ended { .. }));
        let Event::Ended { status, cause } = ended else { panic!("{ended:?}") };
        (status, cause)
    }

    fn assert_dead_before_deadline(&self, pids: &[i32]) {
        wait_for_death(pids);
        let now = HostClock.now();
        assert!(now < self.deadline, "dead {:?} after the deadline", now.since(self.deadline));
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Killed only after the process that it guards: otherwise its grandchildren stay.
        self.line = None;
        if std::thread::panicking() {
            let _ = self.process.kill();
        }
        status_of(&mut self.process, "the guard");
    }
}

#[test]
fn a_leasehold_that_falls_silent_has_its_group_ended_before_the_deadline() {
    let mut guarded = Guarded::shell(STUBBORN);
    let pids = guarded.scratch.pids_of("pids");
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|&pid| support::is_alive(pid)));
    guarded.assert_dead_before_deadline(&pids);
    assert_eq!(guarded.await_end(), (CommandEnd::Signal(9), Cause::Lease));
}

#[test]
fn a_leasehold_that_dies_has_its_group_ended_at_once() {
    // So long that only the death can be the reason.
    let lease = PATIENCE * 10;
    let mut guarded = Guarded::start_under(lease, &["sh", "-c", "sleep 60 & echo $$ $! > pids; wait"]);
    let pids = guarded.scratch.pids_of("pids");
    guarded.line = None;
    guarded.assert_dead_before_deadline(&pids);
    assert!(status_of(&mut guarded.process, "the guard").success());
}

#[test]
fn an_order_to_end_is_followed_with_a_grace() {
    let mut guarded =
        Guarded::shell("trap 'echo asked > asked; exit 3' TERM; echo $$ > pids; while :; do sleep 0.1; done");
    let pids = guarded.scratch.pids_of("pids");
    guarded.order(&Order::End);
    guarded.assert_dead_before_deadline(&pids);
    assert_eq!(guarded.await_end(), (CommandEnd::Code(3), Cause::Lease));
    assert_eq!(guarded.scratch.text_of("asked"), "asked\n");
}

#[test]
fn a_renewal_lets_the_command_run_on_to_its_own_end() {
    let mut guarded = Guarded::shell("sleep 4; exit 7");
    guarded.extend(PATIENCE);
    assert_eq!(guarded.await_end(), (CommandEnd::Code(7), Cause::Itself));
}

#[test]
fn signals_reach_the_whole_group() {
    let script = "trap 'echo got >> leader; exit 5' USR1; \
                  sh -c 'trap \"echo got > child; exit\" USR1; echo ready > ready; while :; do sleep 0.1; done' & \
                  while :; do sleep 0.1; done";
    let mut guarded = Guarded::shell(script);
    guarded.extend(PATIENCE);
    guarded.scratch.text_of("ready");
    guarded.order(&Order::Signal(signal_hook::consts::SIGUSR1));
    assert_eq!(guarded.await_end(), (CommandEnd::Code(5), Cause::Itself));
    assert_eq!(guarded.scratch.text_of("leader"), "got\n");
}

#[test]
fn processes_that_a_command_leaves_in_its_group_end_with_it() {
    let mut guarded = Guarded::shell("sleep 60 & echo $$ $! > pids; exit 0");
    let pids = guarded.scratch.pids_of("pids");
    assert_eq!(guarded.await_end(), (CommandEnd::Code(0), Cause::Itself));
    status_of(&mut guarded.process, "the guard");
    assert!(pids.iter().all(|&pid| !support::is_alive(pid)), "the guard goes when all is gone");
}

#[test]
fn a_guard_that_is_killed_takes_the_command_with_it() {
    let guarded = Guarded::shell("echo $$ > pids; exec sleep 60");
    let pids = guarded.scratch.pids_of("pids");
    guarded.signal(Signal::KILL);
    guarded.assert_dead_before_deadline(&pids);
}

#[test]
fn a_guard_outlives_signals_that_are_meant_for_the_command() {
    let mut guarded = Guarded::shell("echo $$ > pids; sleep 1; exit 4");
    guarded.scratch.text_of("pids");
    guarded.extend(Duration::from_secs(60));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2] {
        guarded.signal(signal);
    }
    assert_eq!(guarded.await_end(), (CommandEnd::Code(4), Cause::Itself));
}

#[test]
fn a_stopped_command_is_reported_and_still_ended_in_time() {
    // A shell that is just starting a command is not reported as stopped before that command goes on.
    let mut guarded = Guarded::shell("echo $$ > pids; exec sleep 60");
    let pids = guarded.scratch.pids_of("pids");
    guarded.order(&Order::Signal(signal_hook::consts::SIGSTOP));
    guarded.await_event(|event| matches!(event, Event::Stopped(_)));
    guarded.assert_dead_before_deadline(&pids);
    assert_eq!(guarded.await_end(), (CommandEnd::Signal(15), Cause::Lease));
}

#[test]
fn a_command_that_cannot_be_executed_is_refused_with_the_systems_number() {
    let mut guarded = Guarded::start(&["./no-such-command"]);
    let refused = guarded.await_event(|event| matches!(event, Event::Refused(_)));
    assert_eq!(refused, Event::Refused(rustix::io::Errno::NOENT.raw_os_error()));
    let mut guarded = Guarded::start(&["/"]);
    let refused = guarded.await_event(|event| matches!(event, Event::Refused(_)));
    assert_eq!(refused, Event::Refused(rustix::io::Errno::ACCESS.raw_os_error()));
}

const LEAVES: &str = "LEASEHOLD_TEST_LEAVES_ITS_GROUP";

#[test]
fn a_command_that_moves_to_another_group_is_ended_as_well() {
    let this = std::env::current_exe().unwrap();
    let role = format!("{LEAVES}=1");
    let mut guarded = Guarded::start(&["env", &role, this.to_str().unwrap(), "--exact", "guard::leaves_its_group"]);
    let pids = guarded.scratch.pids_of("pids");
    guarded.assert_dead_before_deadline(&pids);
    assert_eq!(guarded.await_end(), (CommandEnd::Signal(15), Cause::Lease));
}

/// Played by the test above as a command; does nothing otherwise.
#[test]
fn leaves_its_group() {
    if std::env::var_os(LEAVES).is_none() {
        return;
    }
    let elsewhere = getpgid(getppid()).unwrap();
    setpgid(None, Some(elsewhere)).unwrap();
    std::fs::write("pids", format!("{}\n", std::process::id())).unwrap();
    std::thread::sleep(PATIENCE);
}
