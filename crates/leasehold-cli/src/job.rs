//! What a run leaves behind at the store: the mark of its slot, and a lock that is kept.

use std::time::Duration;

use leasehold::blocking::Guard;
use leasehold::kit::{Mark, Slot};
use lock_core::{FencingToken, LockName};

use crate::durations::human;
use crate::exit::{Exit, Failure};

/// What a run is to leave behind.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The slot, and what marks it.
    pub(crate) marked: Option<(Slot, Mark)>,
    /// Slots before that, and the locks that mark them, latest first.
    pub(crate) earlier: Vec<(Slot, LockName)>,
    pub(crate) crashed: Crashed,
    pub(crate) failed: Failed,
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

/// What a slot counts as whose command has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// As one that has run.
    HasRun,
    /// As one that has not.
    HasNotRun,
}

impl Job {
    /// A run that leaves nothing behind.
    pub(crate) const NONE: Self = Self {
        marked: None,
        earlier: Vec::new(),
        crashed: Crashed::HasRun,
        failed: Failed::HasRun,
        at_least: None,
        at_most: None,
    };

    /// Why the lock is held, with the slot that runs.
    pub(crate) fn why(&self, why: &str) -> String {
        self.marked.as_ref().map_or_else(|| why.to_owned(), |(slot, _)| slot.why(why))
    }

    /// Why the lock was lost that was held for so long, if that was for `at_most`. The command is ended at most this
    /// long before.
    pub(crate) fn overrun(&self, held: Duration, before: Duration) -> Option<String> {
        let at_most = self.at_most.filter(|at_most| held.saturating_add(before) >= *at_most)?;
        Some(format!("the command ran for as long as --at-most {} allows", human(at_most)))
    }
}

/// The lock that marks a slot.
#[derive(Debug)]
pub(crate) enum Marking {
    /// It is held, and is to be kept.
    Held(Unmarked),
    /// It is kept.
    Kept(Marked),
}

/// A slot that is not marked yet.
#[derive(Debug)]
pub(crate) struct Unmarked {
    guard: Guard,
    keep: Duration,
    crashed: Crashed,
}

/// A slot that is marked.
#[derive(Debug)]
pub(crate) struct Marked {
    /// The lock that marks it, and its token.
    pub(crate) name: LockName,
    pub(crate) token: FencingToken,
}

impl Marking {
    /// The mark of a slot, which is to keep it for this time.
    pub(crate) fn new(guard: Guard, keep: Duration, crashed: Crashed) -> Self {
        Self::Held(Unmarked { guard, keep, crashed })
    }

    /// The command is about to begin.
    pub(crate) fn before(self) -> Result<Self, Failure> {
        match self {
            Self::Held(slot) => match slot.crashed {
                Crashed::HasRun => slot.keep().map(Self::Kept),
                Crashed::HasNotRun => slot.still_ours().map(Self::Held),
            },
            Self::Kept(_) => Ok(self),
        }
    }

    /// Marks the slot as run.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        match self {
            Self::Held(slot) => slot.keep().map(drop),
            Self::Kept(_) => Ok(()),
        }
    }
}

impl Unmarked {
    /// The slot, unless its mark was lost during the wait for the lock: then another machine may have run it.
    fn still_ours(self) -> Result<Self, Failure> {
        match self.guard.check() {
            Ok(()) => Ok(self),
            Err(lost) => {
                let (name, reason) = (self.guard.name(), lost.reason);
                let message = format!(
                    "the lease of the slot was lost before the command began: {reason} ({name}); another machine may have \
                     run the slot, so this one did not"
                );
                Err(Failure::new(Exit::Lost, message))
            }
        }
    }

    fn keep(self) -> Result<Marked, Failure> {
        let marked = Marked { name: self.guard.name().clone(), token: self.guard.fencing_token() };
        self.guard.release_keeping(self.keep).map_err(|error| {
            let message = format!("the slot was not marked as run by keeping the lock {}: {error}", marked.name);
            Failure::new(Exit::Unavailable, message)
        })?;
        Ok(marked)
    }
}
