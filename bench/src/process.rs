//! A measured process, seen from the bench.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bench_measure::{Plan, Report, Said, Subject};

/// The first argument of a measured process of our own.
pub(crate) const ROLE: &str = "child";

/// The programs that measure.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// This one.
    pub(crate) own: PathBuf,
    /// The one for rslock, where it was built.
    pub(crate) rslock: Option<PathBuf>,
}

/// A measured process; it is killed when dropped.
pub(crate) struct Process {
    child: Child,
    words: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Programs {
    /// Starts a process that does the work of a plan.
    pub(crate) fn start(&self, plan: &Plan) -> Result<Process> {
        let mut command = match plan.subject {
            Subject::Bare
            | Subject::ByHand
            | Subject::ReadByHand
            | Subject::PermitByHand
            | Subject::Leasehold
            | Subject::Read
            | Subject::Permit
            | Subject::Chain0
            | Subject::Pool
            | Subject::SixteenthHeld
            | Subject::OneReplica
            | Subject::TwoReplicas
            | Subject::Dwell => {
                let mut command = Command::new(&self.own);
                command.arg(ROLE);
                command
            }
            Subject::Rslock | Subject::RslockEager => {
                Command::new(self.rslock.as_deref().context("the program for rslock was not given")?)
            }
        };
        command.arg(serde_json::to_string(plan)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let words = child.stdin.take().context("no way to the measured process")?;
        let lines = child.stdout.take().context("no way from the measured process")?;
        Ok(Process { child, words, lines: BufReader::new(lines) })
    }
}

impl Process {
    /// Waits until it has come to its next halt.
    pub(crate) fn halted(&mut self) -> Result<()> {
        match self.said()? {
            Said::Ready => Ok(()),
            Said::Done(_) => bail!("the measured process was done too early"),
        }
    }

    /// Lets it continue.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        self.words.write_all(b"\n").context("the measured process has gone")
    }

    /// Waits for its results.
    pub(crate) fn report(&mut self) -> Result<Report> {
        match self.said()? {
            Said::Done(report) => Ok(report),
            Said::Ready => bail!("the measured process halted where it should report"),
        }
    }

    /// How much memory it has in use, in bytes, without the pages of its program.
    pub(crate) fn memory(&self) -> Result<u64> {
        let path = Path::new("/proc").join(self.child.id().to_string()).join("status");
        let status = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let kibibytes = |line: &str| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok();
        Ok(status.lines().find_map(kibibytes).context("no RssAnon")? * 1024)
    }

    /// The processor time of all its threads so far.
    pub(crate) fn processor(&self) -> Result<Duration> {
        let tasks = Path::new("/proc").join(self.child.id().to_string()).join("task");
        let mut spent = 0;
        for task in fs::read_dir(&tasks).with_context(|| tasks.display().to_string())? {
            // A thread may have ended since the folder was read.
            let schedule = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            spent += schedule.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(spent))
    }

    /// Ends it at once, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn said(&mut self) -> Result<Said> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        serde_json::from_str(&line).context("the measured process has failed")
    }

    fn end(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
