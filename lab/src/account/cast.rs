//! In which order the workers of a stage begin, and in which processes.

use std::thread;

use leasehold::Fairness;
use leasehold::clock::{Clock, HostClock};

use super::cues::{AT_MOST, Cues, Did};
use super::diary::Diary;
use super::line;
use super::memory::Memory;
use super::process::Process;
use super::worker::{Job, Worker, joined, work_together};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;

/// In which order the workers begin, and in which processes. They are threads of this one unless it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// At the same moment.
    Together,
    /// The first one enters before the others.
    FirstAhead,
    /// The same, and half of the workers are in another process.
    TwoProcesses,
    /// The first one is in its own process. It is killed, and then the others begin.
    WithoutFirst,
    /// The first one is in its own process. It is stopped, and continues when the others are done.
    FirstLate,
    /// The first one is in its own process. It is stopped, and continues when another one is inside.
    FirstAmong,
    /// One worker waits to pay in while the others want to look at the balance, fair or barging.
    InLine(Fairness),
}

impl Cast {
    /// Plays.
    pub(crate) fn play(self, jobs: &[Job], ground: &Ground) -> Result<Diary, Failure> {
        match self {
            Self::Together => work_together(all(jobs)?),
            Self::FirstAhead => work_together(first_ahead(jobs)?),
            Self::TwoProcesses => {
                let (here, there) = jobs.split_at(jobs.len().div_ceil(2));
                let here = first_ahead(here)?;
                let there = Process::start(ground, there)?;
                Ok(work_together(here)?.add(there.answer()?))
            }
            Self::WithoutFirst | Self::FirstLate => {
                let (first, others) = first_apart(jobs, ground)?;
                Cues::new(ground, 0).note_entry(&mut *ground.open_raw()?, HostClock.now())?;
                let meanwhile = work_together(others)?;
                Ok(first.go_on()?.add(meanwhile))
            }
            Self::FirstAmong => {
                let (first, others) = first_apart(jobs, ground)?;
                among(first, others, ground)
            }
            Self::InLine(fairness) => line::play(jobs, ground, fairness),
        }
    }
}

fn all(jobs: &[Job]) -> Result<Vec<Worker>, Failure> {
    let memory = Memory::default();
    jobs.iter().map(|job| Worker::new(job, &memory)).collect()
}

/// The first one is inside.
fn first_ahead(jobs: &[Job]) -> Result<Vec<Worker>, Failure> {
    let mut workers = all(jobs)?.into_iter();
    let first = workers.next().map(Worker::go_first).transpose()?;
    Ok(first.into_iter().chain(workers).collect())
}

/// The first one is in its own process, and has been stopped or killed.
fn first_apart(jobs: &[Job], ground: &Ground) -> Result<(Process, Vec<Worker>), Failure> {
    let (first, others) = jobs.split_at(1);
    let others = all(others)?;
    Ok((Process::start(ground, first)?.until_struck()?, others))
}

/// The first one continues once another one has read the balance.
fn among(first: Process, others: Vec<Worker>, ground: &Ground) -> Result<Diary, Failure> {
    let mut raw = ground.open_raw()?;
    let cues = Cues::new(ground, 0);
    thread::scope(|scope| {
        let first = scope.spawn(move || {
            cues.await_another(&mut *raw, Did::Read, AT_MOST)?;
            first.go_on()
        });
        let others = work_together(others);
        Ok(joined(first.join())?.add(others?))
    })
}
