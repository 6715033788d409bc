//! A measured process: this program with a plan as its argument.

use std::env::current_exe;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use bench_measure::{Plan, Report, Said};
use test_support::bounds::Watchdog;

/// A measured process; it is killed when dropped.
pub(crate) struct Process {
    child: Child,
    words: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one.
    pub(crate) fn start(plan: &Plan) -> Result<Self> {
        let mut command = Command::new(current_exe()?);
        command.arg(serde_json::to_string(plan)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let words = child.stdin.take().context("no way to the measured process")?;
        let lines = child.stdout.take().context("no way from the measured process")?;
        Ok(Self { child, words, lines: BufReader::new(lines) })
    }

    /// Waits until it is warm.
    pub(crate) fn warm(&mut self) -> Result<()> {
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

    fn said(&mut self) -> Result<Said> {
        let _watchdog = Watchdog::over("a word of the measured process");
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        serde_json::from_str(&line).context("the measured process has failed")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
