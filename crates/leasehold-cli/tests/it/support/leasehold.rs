//! The command itself, with a state directory of the test's own.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::Finish;
use test_support::bounds::output_of;

use super::{Scratch, wait_for};

/// `leasehold` with locks of its own.
pub(crate) struct Leasehold {
    pub(crate) scratch: Scratch,
}

impl Leasehold {
    pub(crate) fn new() -> Self {
        Self { scratch: Scratch::new() }
    }

    /// A program with the locks of this test and no others in its environment, and without a terminal.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new("setsid");
        command.arg(program);
        for name in [
            "LEASEHOLD_URL",
            "LEASEHOLD_LOG",
            "LEASEHOLD_HELD",
            "LEASEHOLD_CONFIG",
            "LEASEHOLD_TTL",
            "LEASEHOLD_WAIT",
            "LEASEHOLD_WHY",
            "XDG_CONFIG_HOME",
            "HOME",
        ] {
            command.env_remove(name);
        }
        command.env("XDG_STATE_HOME", self.scratch.path()).current_dir(self.scratch.path());
        command.stdin(Stdio::null());
        command
    }

    /// `leasehold` with a command line, split at spaces.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_leasehold"));
        command.args(line.split_whitespace());
        command
    }

    /// `leasehold run` of a shell script.
    pub(crate) fn script(&self, options: &str, script: &str) -> Command {
        let mut command = self.command("run");
        command.args(options.split_whitespace()).args(["--", "sh", "-c", script]);
        command
    }

    /// Runs a shell script under a lock, to its end.
    pub(crate) fn run(&self, options: &str, script: &str) -> Output {
        self.script(options, script).finish()
    }

    /// Starts a shell script under a lock, and waits until it has written `ready`.
    pub(crate) fn start(&self, options: &str, script: &str, ready: &str) -> Running {
        let child = self.script(options, script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let running = Running { child: Some(child) };
        self.scratch.text_of(ready);
        running
    }

    /// Lets a script of [`until_let_go`] end.
    pub(crate) fn let_go(&self, me: &str) {
        std::fs::write(self.scratch.file(&format!("{me}.done")), "").unwrap();
    }

    /// The answer of `ls` or `show` with `--json`.
    pub(crate) fn json(&self, line: &str) -> Value {
        let output = self.command(line).arg("--json").finish();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Waits until this many wait for a lock, if the store has a queue.
    pub(crate) fn await_waiters(&self, name: &str, count: u64) {
        wait_for("waiters", || (self.json(&format!("show {name}"))["waiters"] == count).then_some(()));
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.scratch.file("leasehold").join("locks.db")
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.database().display())
    }
}

/// A running `leasehold`. At the end of the test it is continued if it was stopped, and killed.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn spawn(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child: Some(child) }
    }

    /// As it is set up, with its output where that was sent.
    pub(crate) fn started(mut command: Command) -> Self {
        Self { child: Some(command.spawn().unwrap()) }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits until it has died by a signal.
    pub(crate) fn await_death(mut self) {
        wait_for("the death of leasehold", || self.has_ended().then_some(()));
        self.child = None;
    }

    pub(crate) fn end(mut self) -> Output {
        output_of(self.child.take().unwrap(), "leasehold")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The exit code as a shell shows it.
/// A shell script that writes a file of this name, and goes on until it may end.
pub(crate) fn until_let_go(me: &str) -> String {
    format!("echo held > {me}; while [ ! -e {me}.done ]; do sleep 0.02; done")
}

pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The JSON line at the end of standard error.
pub(crate) fn report(output: &Output) -> Value {
    let stderr = text(&output.stderr);
    serde_json::from_str(stderr.lines().last().unwrap_or_default()).unwrap_or_else(|_| panic!("no report: {stderr}"))
}
