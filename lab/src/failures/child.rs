//! The process of a holder, as its scene sees it: it obeys orders, and can be suspended and killed.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdin, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde::Serialize;

use super::by_hand::unplanned;
use super::orders::{Answer, Order, ROLE, Setup};
use crate::shared::children;
use crate::shared::failure::Failure;

/// A process that obeys. Killed when dropped.
pub(super) struct Child {
    process: Process,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Child {
    /// Starts a process with these variables in its environment, and waits until it is connected.
    pub(super) fn start(setup: &Setup, environment: Vec<(String, OsString)>) -> Result<Self, Failure> {
        let mut command = children::this_program().map_err(|error| broken(&error))?;
        command.arg(ROLE).envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| broken(&error))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| broken(&"it has no pipes"))?;
        let mut child = Self { process, stdin, stdout: BufReader::new(stdout) };
        child.say(setup)?;
        let answer = child.hear()?;
        if let Answer::Done = answer { Ok(child) } else { Err(unplanned("a holder starts", &format!("{answer:?}"))) }
    }

    /// Gives an order, and returns what its answer means. Another answer is another course than that of the scene.
    pub(super) fn order<T>(
        &mut self,
        order: &Order,
        meaning: impl FnOnce(Answer) -> Result<T, Answer>,
    ) -> Result<T, Failure> {
        self.give(order)?;
        self.answer(order, meaning)
    }

    /// Gives an order, and does not wait for its answer.
    pub(super) fn give(&mut self, order: &Order) -> Result<(), Failure> {
        self.say(order)
    }

    /// Waits for the answer to an order that was given before, and returns what it means.
    pub(super) fn answer<T>(
        &mut self,
        order: &Order,
        meaning: impl FnOnce(Answer) -> Result<T, Answer>,
    ) -> Result<T, Failure> {
        meaning(self.hear()?).map_err(|other| unplanned(&format!("{order:?}"), &format!("{other:?}")))
    }

    /// Suspends the process with all its threads.
    pub(super) fn suspend(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)?;
        waitid(WaitId::Pid(self.pid()), WaitIdOptions::STOPPED).map(|_| ()).map_err(|error| broken(&error))
    }

    /// Resumes it.
    pub(super) fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// Kills it.
    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        self.process.kill().and_then(|()| self.process.wait()).map(|_| ()).map_err(|error| broken(&error))
    }

    fn say(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(|error| broken(&error))?;
        writeln!(self.stdin, "{line}").map_err(|error| broken(&error))
    }

    fn hear(&mut self) -> Result<Answer, Failure> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).map_err(|error| broken(&error))?;
        serde_json::from_str(&line).map_err(|error| broken(&error))
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        kill_process(self.pid(), signal).map_err(|error| broken(&error))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn broken(error: &dyn Display) -> Failure {
    Failure::system("a holder's process failed", error)
}
