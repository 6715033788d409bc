//! The outcome of a job.

use std::fmt;

use lock_core::{BackendError, FencingToken, Holder};

use crate::slot::Slot;

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the job may have been skipped"]
pub enum JobOutcome<T> {
    /// The work was done under the lock of the job.
    Ran(JobRun<T>),
    /// The work was not begun. That is not an error: another machine did it, or does it.
    Skipped(Skipped),
}

impl<T> JobOutcome<T> {
    /// The result of the work, if it was done here.
    pub fn ran(self) -> Option<T> {
        match self {
            Self::Ran(run) => Some(run.value),
            Self::Skipped(_) => None,
        }
    }
}

/// A run that was held under the lock of the job to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobRun<T> {
    /// The result of the work.
    pub value: T,
    /// The state of the slot at the store from now on.
    pub slot: SlotAfter,
    /// Slots before this one that nobody has run, oldest first: those after the last one that has run, as far as the job was given
    /// about earlier slots and the store answered. At most 100.
    pub missed: Vec<Slot>,
}

/// The state of a slot at the store after its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotAfter {
    /// The job has no slots.
    None,
    /// The slot counts as run, and the store has confirmed that.
    HasRun,
    /// The work failed, and the slot may be run again.
    Free,
    /// The store has not confirmed what was asked of it after the work. After work that succeeded, the slot may be run again; after
    /// work that failed, it may count as run.
    Unknown,
}

impl SlotAfter {
    /// This, if the store has confirmed it.
    #[cfg(any(feature = "async", feature = "blocking"))]
    pub(crate) fn confirmed<T, E>(self, answer: &Result<T, E>) -> Self {
        if answer.is_ok() { self } else { Self::Unknown }
    }
}

/// A job that was asked to begin.
#[derive(Debug)]
#[must_use = "the job may have been skipped"]
pub enum Begun<R> {
    /// It runs here.
    Run(R),
    /// It is not begun. That is not an error: another machine did it, or does it.
    Skipped(Skipped),
}

/// How a run ended under the lock of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunEnd {
    /// The state of the slot at the store from now on.
    pub slot: SlotAfter,
    /// Why the store did not confirm the release of the job's lock, if so. The client repeats it in the background; the lock is free
    /// when its ttl is over at the latest. The run counts.
    pub unconfirmed: Option<BackendError>,
}

/// A job that was not run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The name of the job.
    pub job: String,
    /// Its slot, if it has slots.
    pub slot: Option<Slot>,
    /// Why it was not run.
    pub reason: SkipReason,
    /// Who ran it, or runs it, if known.
    pub holder: Option<Holder>,
}

/// Why a job was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// Its slot has run. A run that crashed or failed counts, unless the job says otherwise.
    SlotHasRun,
    /// Its slot runs now. A run that crashed is shown as running until its ttl is over.
    SlotRuns,
    /// Its slot was taken, and the store did not show whether it has run: the machine that took it waits for another run of the job to
    /// end, or the lock of the job is kept for `at_least`, or the store failed when it was asked.
    SlotTaken,
    /// The job runs now, for another slot if it has slots; or a run began less than its `at_least` ago.
    Running,
}

impl Skipped {
    /// The fencing token of the run in progress, if the store shows it. Of a run that has ended, it is not known.
    pub fn token(&self) -> Option<FencingToken> {
        match (self.reason, &self.holder) {
            (SkipReason::SlotRuns | SkipReason::Running, Some(Holder::Leasehold { tokens, .. })) => Some(tokens.high()),
            (_, _) => None,
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the job \"{}\" was not run: ", self.job)?;
        match self.slot {
            Some(slot) if self.reason != SkipReason::Running => write!(f, "its slot {slot} ")?,
            Some(_) | None => f.write_str("it ")?,
        }
        f.write_str(match self.reason {
            SkipReason::SlotHasRun => "has run, by ",
            SkipReason::SlotRuns => "runs now, by ",
            SkipReason::SlotTaken => "was taken by ",
            SkipReason::Running => "runs or has just run, by ",
        })?;
        match &self.holder {
            Some(holder) => holder.fmt(f)?,
            None => f.write_str("somebody")?,
        }
        self.token().map_or(Ok(()), |token| write!(f, ", token {token}"))
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Note, TokenRange, Width};

    use super::*;

    #[test]
    fn a_skipped_job_says_why() {
        let slot = Some("2026-11-21T03:00".parse().unwrap());
        let text = |reason, holder| Skipped { job: "nightly".to_owned(), slot, reason, holder }.to_string();
        let holder = || {
            let tokens = TokenRange::above(6, Width::ONE).unwrap();
            Some(Holder::Leasehold { tokens, note: Note::from_wire("4711@web-3") })
        };
        let begin = "the job \"nightly\" was not run: ";
        for (reason, holder, end) in [
            (SkipReason::SlotTaken, None, "its slot 2026-11-21T03:00:00Z was taken by somebody"),
            (SkipReason::SlotHasRun, holder(), "its slot 2026-11-21T03:00:00Z has run, by pid 4711 on web-3"),
            (SkipReason::SlotRuns, holder(), "its slot 2026-11-21T03:00:00Z runs now, by pid 4711 on web-3, token 7"),
            (SkipReason::Running, Some(Holder::Foreign), "it runs or has just run, by something other than leasehold"),
        ] {
            assert_eq!(text(reason, holder), format!("{begin}{end}"));
        }
    }
}
