//! The process of a server, which ends with the process that started it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::bounds::{status_of, wait_for};
use crate::{must, signals};

/// Waits until its input ends, because the process at the other end has ended; then it kills a server and removes its directory.
const GUARD: &str = "read -r nothing; kill -KILL \"$1\"; rm -rf -- \"$2\"";

/// A server. Dropping this kills it.
#[derive(Debug)]
pub(crate) struct Process {
    server: Child,
    guard: Child,
}

impl Process {
    /// Starts a server that works in this directory.
    pub(crate) fn start(command: &mut Command, directory: &Path) -> Self {
        let server = must("start the server", command.spawn());
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "guard of the server", &server.id().to_string()]).arg(directory);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // In a group of its own, so that what interrupts the tests does not end it.
        let guard = must("start the guard of the server", guard.process_group(0).spawn());
        Self { server, guard }
    }

    /// What it reads and what it writes, if the command has pipes for both. They can be taken once.
    pub(crate) fn pipes(&mut self) -> (ChildStdin, ChildStdout) {
        let pipes = self.server.stdin.take().zip(self.server.stdout.take());
        must("take the pipes of the process", pipes.ok_or("it has none"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        must("look at the server", self.server.try_wait()).is_none()
    }

    /// Kills the server and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // First, because later another process may have the number of the server.
        self.guard.kill().ok();
        must("wait for the killed guard of the server", self.guard.wait());
        self.server.kill().ok();
        status_of(&mut self.server, "the killed server");
    }

    /// Suspends all threads of the server.
    pub(crate) fn stop(&self) {
        signals::stop(self.pid());
        wait_for("the server stops", || self.is_still());
    }

    pub(crate) fn resume(&self) {
        signals::resume(self.pid());
    }

    /// Where the system does not tell (outside of Linux), it is.
    fn is_still(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten().filter_map(Result::ok);
        let told = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        // `PID (NAME) STATE ...`
        told.into_iter()
            .all(|told| told.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X'])))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
