//! Holders and waiters in other processes: the test program, started again to run only the test that plays this part.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{self, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::Moment;
use rustix::process::{Pid, Signal, kill_process};

use crate::facade::Facade;

/// The environment variable that makes the test program a child, and says which part it plays.
pub(crate) const VARIABLE: &str = "LEASEHOLD_CONFORMANCE_PLAY";
/// The prefix of a child's messages in the output of its test program.
pub(crate) const WORD: &str = "@child ";

/// What a child does: it waits for a lock, holds it, and answers questions about it until its input ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Play {
    pub(crate) facade: Facade,
    pub(crate) name: String,
    pub(crate) ttl: Duration,
    pub(crate) address: String,
}

impl Play {
    fn to_text(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.facade, self.ttl.as_millis(), self.name, self.address)
    }

    pub(crate) fn from_text(text: &str) -> Self {
        let mut lines = text.splitn(4, '\n');
        let mut next = || lines.next().unwrap();
        let facade = match next() {
            "blocking" => Facade::Blocking,
            _ => Facade::Nonblocking,
        };
        let ttl = Duration::from_millis(next().parse().unwrap());
        Self { facade, ttl, name: next().into(), address: next().into() }
    }
}

/// A child, from its parent's side. It is killed when this is dropped.
pub(crate) struct Child {
    process: process::Child,
    words: Receiver<String>,
    patience: Duration,
}

/// What a child says when it has the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) token: u64,
    /// Until when it may rely on the lock, by the host's clock.
    pub(crate) until: Moment,
}

impl Child {
    pub(crate) fn start(play: &Play, module: &str, patience: Duration) -> Self {
        // Names of tests do not include the program.
        let test = match module.split_once("::") {
            Some((_, path)) => format!("{path}::child_process"),
            None => "child_process".to_owned(),
        };
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", &test, "--nocapture"])
            .env(VARIABLE, play.to_text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, words) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(word) = line.strip_prefix(WORD) {
                    sender.send(word.to_owned()).ok();
                }
            }
        });
        Self { process, words, patience }
    }

    /// The next message of the child.
    #[track_caller]
    fn hear(&self) -> String {
        self.words.recv_timeout(self.patience).expect("the child says something in time")
    }

    /// Waits until the child has the lock.
    #[track_caller]
    pub(crate) fn held(&self) -> Held {
        let word = self.hear();
        let mut numbers = word.strip_prefix("held ").unwrap().split(' ').map(|number| number.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        Held { token: next(), until: Moment::from_nanos(next()) }
    }

    /// Waits until the child is about to wait for the lock.
    #[track_caller]
    pub(crate) fn waits(&self) {
        assert_eq!(self.hear(), "waiting");
    }

    /// Sends the child a question and returns its answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, question: &str) -> String {
        let input = self.process.stdin.as_mut().unwrap();
        writeln!(input, "{question}").unwrap();
        self.hear()
    }

    /// Kills the child, so it can release nothing.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits until the process has ended by itself.
    #[track_caller]
    pub(crate) fn ends(&mut self) {
        let end = Instant::now() + self.patience;
        while self.process.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the child does not end within {:?}", self.patience);
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_back_from_its_text() {
        let play = Play {
            facade: Facade::Blocking,
            name: "a b".into(),
            ttl: Duration::from_secs(2),
            address: "one\ntwo".into(),
        };
        assert_eq!(Play::from_text(&play.to_text()), play);
    }
}
