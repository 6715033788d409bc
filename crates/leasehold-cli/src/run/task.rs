//! What is done with a lock: run a command under it once, or whenever this machine leads.

use std::time::Duration;

use lock_core::{Budget, Fairness, Mode};
use lock_host::LongWaits;

use super::budget;
use crate::args::work::WorkArgs;
use crate::args::{ElectArgs, RunArgs};
use crate::exit::{BUSY, Failure};
use crate::job::Job;
use crate::wish::{Patience, Wish};

/// A command under a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task<'a> {
    /// Once.
    Run(&'a RunArgs),
    /// Whenever this machine leads.
    Elect(&'a ElectArgs),
}

impl<'a> Task<'a> {
    /// What both have in common.
    pub(super) fn work(self) -> &'a WorkArgs {
        match self {
            Self::Run(args) => &args.work,
            Self::Elect(args) => &args.work,
        }
    }

    /// Which lock to ask for, and how.
    ///
    /// # Errors
    /// Those of an invalid command line.
    pub(super) fn wish(self, budget: Budget) -> Result<Wish, Failure> {
        let work = self.work();
        let (mode, patience, busy_code, job) = match self {
            Self::Elect(_) => (Mode::Exclusive, Patience::Endless, BUSY, Job::default()),
            Self::Run(args) => {
                let job = args.job.job(budget::shortest_run(budget))?;
                (args.mode.mode(), patience(args), args.busy_code, job)
            }
        };
        let (name, why, fairness) = (work.name.clone(), work.why.clone(), self.fairness());
        let long_waits = match self {
            Self::Run(_) => LongWaits::Reported,
            Self::Elect(_) => LongWaits::Expected,
        };
        Ok(Wish { name, mode, ttl: work.ttl, why, patience, fairness, long_waits, busy_code, job })
    }

    /// What each machine does if each has a store of its own; `None` of a task that makes sense on one machine.
    pub(super) fn apart(self) -> Option<&'static str> {
        match self {
            Self::Elect(_) => Some("elects a leader of its own"),
            Self::Run(args) => args.job.has_slot().then_some("runs the slot"),
        }
    }

    fn fairness(self) -> Fairness {
        match self {
            Self::Run(RunArgs { barging: true, .. }) => Fairness::Barging,
            Self::Run(_) | Self::Elect(_) => Fairness::Fair,
        }
    }
}

fn patience(args: &RunArgs) -> Patience {
    match (args.no_wait, args.wait) {
        (true, _) | (false, Some(Duration::ZERO)) => Patience::None,
        (false, Some(limit)) => Patience::Until(limit),
        (false, None) => Patience::Endless,
    }
}
