//! Workers in their own process. One alone may be stopped or killed in its first deposit.

use std::io::{BufRead, Write, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use clap::Parser;
use lock_host::{Clock, HostClock};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde::{Deserialize, Serialize};

use super::diary::Diary;
use super::memory::Memory;
use super::worker::{Job, Worker, work_together};
use crate::exit::{Exit, Failure};

/// The first argument of such a process.
pub(crate) const ROLE: &str = "demo-worker";
/// How long it may take until its worker is stopped or killed, and how often that is checked.
const STRUCK_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The command line of such a process: its jobs arrive on standard input, since they may contain a password.
#[derive(Debug, Parser)]
pub(crate) struct Role {}

/// What such a process answers.
#[derive(Serialize, Deserialize)]
enum Answer {
    Done(Diary),
    Failed(String),
}

/// A process with workers of its own. Killed when dropped.
pub(crate) struct Process {
    process: Option<Child>,
    pid: Pid,
}

impl Process {
    /// Starts a process for these workers. One alone goes first.
    pub(crate) fn start(jobs: &[Job]) -> Result<Self, Failure> {
        let started = spawn(jobs).map_err(|error| Failure::system("cannot start a worker process", error))?;
        let pid = Pid::from_child(&started);
        Ok(Self { process: Some(started), pid })
    }

    /// Waits until its worker has been stopped or killed.
    pub(crate) fn until_struck(self) -> Result<Self, Failure> {
        let deadline = HostClock.now() + STRUCK_WITHIN;
        while HostClock.now() < deadline {
            match self.look()? {
                Look::Stopped | Look::Killed => return Ok(self),
                Look::Running => thread::sleep(LOOK_EVERY),
                // Its answer says why.
                Look::Ended => return self.answer().and_then(|_| Err(never_struck())),
            }
        }
        Err(never_struck())
    }

    /// Continues the process if it was stopped, and waits for its answer. One that was killed has none.
    pub(crate) fn go_on(self) -> Result<Diary, Failure> {
        if let Look::Killed = self.look()? {
            return Ok(Diary::default());
        }
        kill_process(self.pid, Signal::CONT).map_err(|error| Failure::system("cannot continue a worker", error))?;
        self.answer()
    }

    fn look(&self) -> Result<Look, Failure> {
        let changes = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let change = waitid(WaitId::Pid(self.pid), changes);
        Ok(match change.map_err(|error| Failure::system("cannot look at a worker process", error))? {
            None => Look::Running,
            Some(change) if change.stopped() => Look::Stopped,
            Some(change) if change.killed() => Look::Killed,
            Some(_) => Look::Ended,
        })
    }

    /// Waits until it has ended.
    pub(crate) fn answer(mut self) -> Result<Diary, Failure> {
        let broken = |why: String| Failure::system("a worker process failed", why);
        let process = self.process.take().ok_or_else(|| broken("it is gone".to_owned()))?;
        let output = process.wait_with_output().map_err(|error| broken(error.to_string()))?;
        match serde_json::from_slice(&output.stdout) {
            Ok(Answer::Done(diary)) => Ok(diary),
            Ok(Answer::Failed(why)) => Err(Failure::new(Exit::Unavailable, why)),
            Err(_) => Err(broken(output.status.to_string())),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

enum Look {
    Running,
    Stopped,
    Killed,
    Ended,
}

fn never_struck() -> Failure {
    Failure::system("a worker process was never stopped", "it took too long")
}

fn spawn(jobs: &[Job]) -> std::io::Result<Child> {
    let this = Path::new("/proc/self/exe");
    let mut command = if this.exists() { Command::new(this) } else { Command::new(std::env::current_exe()?) };
    // In its own group, so that Ctrl-Z and fg do not affect it.
    command.arg(ROLE).process_group(0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        serde_json::to_writer(&mut pipe, jobs)?;
        pipe.write_all(b"\n")?;
    }
    Ok(child)
}

/// The process itself.
pub(crate) fn main(_: &Role) -> Exit {
    let answer = work().map_or_else(|failure| Answer::Failed(failure.message), Answer::Done);
    // If the reader is gone, the answer is not needed.
    serde_json::to_writer(stdout().lock(), &answer).map_or(Exit::Internal, |()| Exit::Done)
}

fn work() -> Result<Diary, Failure> {
    die_with_parent();
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(|error| Failure::system("cannot read the jobs", error))?;
    let jobs: Vec<Job> =
        serde_json::from_str(&line).map_err(|_| Failure::system("cannot read the jobs", "they are none"))?;
    let memory = Memory::default();
    work_together(jobs.iter().map(|job| Worker::new(job, &memory)).collect::<Result<_, _>>()?)
}

/// A stopped process that is never continued would stay forever.
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    // Without it, the kernel still ends a stopped orphan by SIGHUP and SIGCONT.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
}
