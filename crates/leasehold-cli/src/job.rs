//! What a run leaves behind at the store: the mark of its slot, and a lock that is kept.

use std::time::Duration;

use leasehold::blocking::Guard;
use leasehold::kit::{Mark, Slot};

use crate::durations::human;
use crate::exit::{Exit, Failure};

/// What a run is to leave behind.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The slot, and what marks it.
    pub(crate) marked: Option<(Slot, Mark)>,
    pub(crate) crashed: Crashed,
    pub(crate) at_least: Option<Duration>,
    pub(crate) at_most: Option<Duration>,
}

/// What a slot counts as whose run has crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crashed {
    /// As one that has run.
    HasRun,
    /// As one that has not.
    HasNotRun,
}

impl Job {
    /// A run that leaves nothing behind.
    pub(crate) const NONE: Self = Self { marked: None, crashed: Crashed::HasRun, at_least: None, at_most: None };
}

impl Job {
    /// Why the lock was lost that was held for so long, if that was for `at_most`. The command is ended at most this
    /// long before.
    pub(crate) fn overrun(&self, held: Duration, before: Duration) -> Option<String> {
        let at_most = self.at_most.filter(|at_most| held.saturating_add(before) >= *at_most)?;
        Some(format!("the command ran for as long as --at-most {} allows", human(at_most)))
    }
}

/// The lock that marks a slot, held.
#[derive(Debug)]
pub(crate) struct Marking {
    guard: Guard,
    keep: Duration,
    crashed: Crashed,
}

impl Marking {
    /// The mark of a slot, which keeps it for this time.
    pub(crate) fn new(guard: Guard, keep: Duration, crashed: Crashed) -> Self {
        Self { guard, keep, crashed }
    }

    /// The command is about to begin. Gives what is left to be done when it has ended.
    pub(crate) fn before(self) -> Result<Option<Self>, Failure> {
        match self.crashed {
            Crashed::HasRun => self.keep().map(|()| None),
            Crashed::HasNotRun => Ok(Some(self)),
        }
    }

    /// Marks the slot as run.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        let mark = self.guard.name().clone();
        self.guard.release_keeping(self.keep).map_err(|error| {
            let message = format!("the slot was not marked as run by keeping the lock {mark}: {error}");
            Failure::new(Exit::Unavailable, message)
        })
    }
}
