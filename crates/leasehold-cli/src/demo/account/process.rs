//! A worker in its own process, which is stopped in the middle of its first deposit.

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
use super::gate::LastEntry;
use super::worker::{Job, Worker};
use crate::exit::{Exit, Failure};

/// The first argument of such a process.
pub(crate) const ROLE: &str = "demo-worker";
/// How long it may take until it is stopped, and how often that is checked.
const STOPPED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The command line of such a process: its job arrives on standard input, since it may contain a password.
#[derive(Debug, Parser)]
pub(crate) struct Role {}

/// What such a process answers.
#[derive(Serialize, Deserialize)]
enum Answer {
    Done(Diary),
    Failed(String),
}

/// A worker whose process is stopped. Killed when dropped.
pub(crate) struct Paused {
    process: Option<Child>,
    pid: Pid,
}

impl Paused {
    /// Starts the process and waits until it is stopped.
    pub(crate) fn start(job: &Job) -> Result<Self, Failure> {
        let started = spawn(job).map_err(|error| Failure::system("cannot start a worker process", error))?;
        let pid = Pid::from_child(&started);
        let paused = Self { process: Some(started), pid };
        let deadline = HostClock.now() + STOPPED_WITHIN;
        while HostClock.now() < deadline {
            match paused.look()? {
                Look::Stopped => return Ok(paused),
                Look::Running => thread::sleep(LOOK_EVERY),
                // Its answer says why.
                Look::Ended => return paused.answer().and_then(|_| Err(never_stopped())),
            }
        }
        Err(never_stopped())
    }

    /// Continues the process and waits for its answer.
    pub(crate) fn go_on(self) -> Result<Diary, Failure> {
        kill_process(self.pid, Signal::CONT).map_err(|error| Failure::system("cannot continue a worker", error))?;
        self.answer()
    }

    fn look(&self) -> Result<Look, Failure> {
        let changes = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let change = waitid(WaitId::Pid(self.pid), changes);
        Ok(match change.map_err(|error| Failure::system("cannot look at a worker process", error))? {
            None => Look::Running,
            Some(change) if change.stopped() => Look::Stopped,
            Some(_) => Look::Ended,
        })
    }

    fn answer(mut self) -> Result<Diary, Failure> {
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

impl Drop for Paused {
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
    Ended,
}

fn never_stopped() -> Failure {
    Failure::system("a worker process was never stopped", "it took too long")
}

fn spawn(job: &Job) -> std::io::Result<Child> {
    let this = Path::new("/proc/self/exe");
    let mut command = if this.exists() { Command::new(this) } else { Command::new(std::env::current_exe()?) };
    // In its own group, so that Ctrl-Z and fg do not affect it.
    command.arg(ROLE).process_group(0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        serde_json::to_writer(&mut pipe, job)?;
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
    stdin().lock().read_line(&mut line).map_err(|error| Failure::system("cannot read the job", error))?;
    let job: Job = serde_json::from_str(&line).map_err(|_| Failure::system("cannot read the job", "it is not one"))?;
    Worker::new(&job, &LastEntry::now())?.go_first()?.work()
}

/// A stopped process that is never continued would stay forever.
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    // Without it, the kernel still ends a stopped orphan by SIGHUP and SIGCONT.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
}
