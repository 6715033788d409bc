//! The task under a lock: to run a command once, or whenever this machine leads.

use std::time::Duration;

use leasehold::inspect::Mode;
use leasehold::kit::Budget;
use leasehold::{LockOptions, OnUnavailable};

use super::budget;
use crate::args::work::WorkArgs;
use crate::args::{ElectArgs, RunArgs};
use crate::exit::{BUSY, Failure};
use crate::job::Job;
use crate::lock_request::{LockRequest, Patience};

/// A command under a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task<'a> {
    /// Once.
    Run(&'a RunArgs),
    /// Whenever this machine leads.
    Elect(&'a ElectArgs),
}

impl<'a> Task<'a> {
    /// The common arguments.
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
    pub(super) fn request(self, budget: Budget) -> Result<LockRequest, Failure> {
        let work = self.work();
        let name = work.name.clone();
        // A wait for an unreachable store ends at the same time as any other wait.
        let options = LockOptions::default().ttl(work.ttl.get()).why(&*work.why).on_unavailable(OnUnavailable::Wait);
        let args = match self {
            Self::Elect(_) => {
                let (mode, options, patience) = (Mode::Exclusive, options.standing_by(), Patience::Endless);
                return Ok(LockRequest { name, mode, options, patience, busy_code: BUSY, job: Job::default() });
            }
            Self::Run(args) => args,
        };
        let job = args.job.job(budget::shortest_run(budget))?;
        let options = if args.barging { options.barging() } else { options };
        let options = job.at_most.into_iter().fold(options, LockOptions::max_hold);
        let (mode, patience, busy_code) = (args.mode.mode(), patience(args), args.busy_code);
        Ok(LockRequest { name, mode, options, patience, busy_code, job })
    }

    /// What each machine does if each has a store of its own; `None` of a task that makes sense on one machine.
    pub(super) fn apart(self) -> Option<&'static str> {
        match self {
            Self::Elect(_) => Some("elects a leader of its own"),
            Self::Run(args) => args.job.has_slot().then_some("runs the slot"),
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
