//! Workers in their own process. One alone may be stopped or killed in its first deposit.

use std::io::{BufRead, Read, Write, stdin, stdout};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde::{Deserialize, Serialize};

use super::diary::Diary;
use super::memory::Memory;
use super::worker::{Job, Worker, work_together};
use crate::shared::children::{self, Children};
use crate::shared::failure::{Exit, Failure};
use crate::shared::ground::Ground;

/// The subcommand of such a process. Its jobs arrive on standard input, since they may contain a password.
const ROLE: &str = "worker";
/// How long it may take until its worker is stopped or killed, and how often that is checked.
const STRUCK_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What such a process answers.
#[derive(Serialize, Deserialize)]
enum Answer {
    Done(Diary),
    Failed(String),
}

/// A process with workers of its own. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    children: Children,
}

impl Process {
    /// Starts a process for these workers. One alone goes first.
    pub(crate) fn start(ground: &Ground, jobs: &[Job]) -> Result<Self, Failure> {
        ground.unless_closed(|| {
            let child = spawn(jobs).map_err(|error| Failure::system("cannot start a worker process", error))?;
            let (pid, children) = (Pid::from_child(&child), ground.children().clone());
            children.add(pid);
            Ok(Self { child, pid, children })
        })
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
        let mut said = Vec::new();
        let read = self.child.stdout.take().map(|mut stdout| stdout.read_to_end(&mut said)).transpose();
        read.map_err(|error| broken(error.to_string()))?;
        match serde_json::from_slice(&said) {
            Ok(Answer::Done(diary)) => Ok(diary),
            Ok(Answer::Failed(why)) => Err(Failure::new(Exit::Unavailable, why)),
            Err(_) => {
                self.children.forget(self.pid);
                Err(broken(self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())))
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.children.forget(self.pid);
        self.child.wait().ok();
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
    let mut child = children::this_program()?.arg(ROLE).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        serde_json::to_writer(&mut pipe, jobs)?;
        pipe.write_all(b"\n")?;
    }
    Ok(child)
}

/// The process itself.
pub(crate) fn main() -> Result<(), Failure> {
    let answer = work().map_or_else(|failure| Answer::Failed(failure.message), Answer::Done);
    serde_json::to_writer(stdout().lock(), &answer).map_err(|error| Failure::system("cannot answer", error))
}

fn work() -> Result<Diary, Failure> {
    children::die_with_parent();
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(|error| Failure::system("cannot read the jobs", error))?;
    let jobs: Vec<Job> =
        serde_json::from_str(&line).map_err(|_| Failure::system("cannot read the jobs", "they are none"))?;
    let memory = Memory::default();
    work_together(jobs.iter().map(|job| Worker::new(job, &memory)).collect::<Result<_, _>>()?)
}
