//! Which run of a job a command is, if it is one.

use std::time::Duration;

use leasehold::blocking::{Client, Kit};
use leasehold::kit::Slot;
use leasehold::{LockName, LockOptions};

use crate::durations::human;

/// Which run of a job a command is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    pub(crate) slot: Option<Slot>,
    pub(crate) retain: Option<Duration>,
    pub(crate) crashed: Again,
    pub(crate) failed: Again,
    pub(crate) every: Option<Duration>,
    pub(crate) previous: Vec<Slot>,
    pub(crate) at_least: Option<Duration>,
    pub(crate) at_most: Option<Duration>,
}

/// Whether a slot can be run again after a run that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Again {
    /// It counts as run.
    #[default]
    No,
    /// It counts as not run.
    Yes,
}

impl Job {
    /// The job of the library that this is a run of; `None` for a command that only needs a lock.
    pub(crate) fn of(
        &self,
        client: &Client,
        name: &LockName,
        options: LockOptions,
    ) -> Option<leasehold::blocking::Job> {
        if self.slot.is_none() && self.at_least.is_none() {
            return None;
        }
        // A job of the library does not wait unless a time is set.
        let wait = options.wait.unwrap_or(Duration::MAX);
        let job = client.job(name).options(options).wait(wait);
        let job = self.slot.into_iter().fold(job, leasehold::blocking::Job::slot);
        let job = self.retain.into_iter().fold(job, leasehold::blocking::Job::retain);
        let job = self.every.into_iter().fold(job, leasehold::blocking::Job::every);
        let job = self.at_least.into_iter().fold(job, leasehold::blocking::Job::at_least);
        let job = if self.previous.is_empty() { job } else { job.previous(self.previous.iter().copied()) };
        Some(match self.crashed {
            Again::Yes => job.retry_after_crash(),
            Again::No => job,
        })
    }

    /// Why the lock was lost that was held for so long, if that was for `at_most`. The command is ended at most this
    /// long before.
    pub(crate) fn overrun(&self, held: Duration, before: Duration) -> Option<String> {
        let at_most = self.at_most.filter(|at_most| held.saturating_add(before) >= *at_most)?;
        Some(format!("the command ran for as long as --at-most {} allows", human(at_most)))
    }
}
