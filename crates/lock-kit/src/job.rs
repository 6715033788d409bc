//! The policy of jobs: what is acquired, what is kept for how long, and what is said about it.

use std::fmt;
use std::time::{Duration, SystemTime};

use lock_core::{Ability, AcquireError, Capabilities, Holder, Invalid, LockName, Lost};
use lock_host::{LockOptions, ReleaseError};

use crate::slot::{Mark, Slot};

/// How a job is to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    name: String,
    pub(crate) options: LockOptions,
    pub(crate) slot: Option<Slot>,
    pub(crate) at_least: Duration,
    pub(crate) retain: Duration,
    pub(crate) crashed: Crashed,
}

/// What a slot counts as whose run has crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crashed {
    /// As one that has run: it is marked before the work begins.
    HasRun,
    /// As one that has not: it is marked after the work.
    HasNotRun,
}

/// The options of a lock, and its name.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) options: LockOptions,
}

impl Plan {
    pub(crate) fn new(name: &str) -> Self {
        // A schedule calls again, so a job does not wait.
        let options = LockOptions::default().wait(Duration::ZERO);
        let (at_least, retain) = (Duration::ZERO, Mark::RETAIN);
        Self { name: name.to_owned(), options, slot: None, at_least, retain, crashed: Crashed::HasRun }
    }

    /// What is acquired while the job runs.
    pub(crate) fn job(&self) -> Wanted {
        Wanted { name: self.name.clone(), options: self.options.clone() }
    }

    /// What marks the slot, and for how long it is kept; `None` for a job without slots. Checks all that can be checked
    /// before a request is sent.
    pub(crate) fn mark(
        &self,
        now: SystemTime,
        store: &Capabilities,
    ) -> Result<Option<(Wanted, Duration)>, AcquireError> {
        self.check()?;
        if self.slot.is_some() || !self.at_least.is_zero() {
            store.check_ability(Ability::Keep)?;
        }
        let Some(slot) = self.slot else { return Ok(None) };
        let Mark { name, keep } = Mark::of(&self.name, slot, self.retain, now)?;
        // The wait for the lock of the job is no part of the work.
        let mut options = self.options.clone();
        options.max_hold = None;
        Ok(Some((Wanted { name, options }, keep)))
    }

    fn check(&self) -> Result<(), Invalid> {
        self.options.validate()?;
        self.name.parse::<LockName>()?;
        match self.options.max_hold {
            Some(at_most) if self.at_least > at_most => Err(Invalid::new(
                "at_least",
                humantime::format_duration(self.at_least),
                format!("it is above at_most, which is {}", humantime::format_duration(at_most)),
                "make it shorter, or at_most longer",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// For how long the lock of the job is kept after a run that took this long.
    pub(crate) fn keep_after(&self, took: Duration) -> Option<Duration> {
        Some(self.at_least.saturating_sub(took)).filter(|left| !left.is_zero())
    }

    /// Why the lock of the job was not acquired, unless that is an error.
    pub(crate) fn not_acquired(&self, error: AcquireError) -> Result<Skipped, AcquireError> {
        match error {
            AcquireError::TimedOut { holder, .. } => Ok(self.skipped(SkipReason::Running, holder)),
            AcquireError::Invalid(_)
            | AcquireError::Forgotten { .. }
            | AcquireError::Backend(_)
            | AcquireError::Closed
            | AcquireError::Cancelled
            | _ => Err(error),
        }
    }

    pub(crate) fn skipped(&self, reason: SkipReason, holder: Option<Holder>) -> Skipped {
        Skipped { job: self.name.clone(), slot: self.slot, reason, holder }
    }
}

/// What came of work under a lock. It counts if the lock was held until the release, even if the store did not confirm that.
pub(crate) fn counted<T>(done: Result<T, Lost>, released: Result<(), ReleaseError>) -> Result<T, Lost> {
    match released {
        Err(ReleaseError::Lost(lost)) => Err(lost),
        Ok(()) | Err(_) => done,
    }
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the job may have been skipped"]
pub enum JobOutcome<T> {
    /// The work was done under the lock of the job, and returned this.
    Ran(T),
    /// The work was not begun. That is not an error: another machine did it, or does it.
    Skipped(Skipped),
}

impl<T> JobOutcome<T> {
    /// What the work returned, if it was done here.
    pub fn ran(self) -> Option<T> {
        match self {
            Self::Ran(value) => Some(value),
            Self::Skipped(_) => None,
        }
    }
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
    /// Its slot has run, or runs now.
    SlotTaken,
    /// The job runs now, for another slot if it has slots; or a run began less than its `at_least` ago.
    Running,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the job \"{}\" was not run: ", self.job)?;
        match (self.reason, self.slot) {
            (SkipReason::SlotTaken, Some(slot)) => write!(f, "its slot {slot} was taken by ")?,
            (SkipReason::SlotTaken, None) => f.write_str("it was taken by ")?,
            (SkipReason::Running, _) => f.write_str("it runs or has just run, by ")?,
        }
        match &self.holder {
            Some(holder) => holder.fmt(f),
            None => f.write_str("somebody"),
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Durability, ErrorKind, Waiting};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn store() -> Capabilities {
        Capabilities::new("test", Waiting::Poll, Durability::Process)
    }

    fn able() -> Capabilities {
        store().with_abilities(&[Ability::Keep])
    }

    #[test]
    fn a_lock_is_kept_until_at_least_so_long_after_the_begin() {
        let plan = Plan { at_least: HOUR, ..Plan::new("nightly") };
        assert_eq!(plan.keep_after(HOUR / 4), Some(HOUR * 3 / 4));
        assert_eq!((plan.keep_after(HOUR), plan.keep_after(2 * HOUR)), (None, None));
        assert_eq!(Plan::new("nightly").keep_after(Duration::ZERO), None);
    }

    #[test]
    fn bad_plans_are_refused_before_anything_is_sent() {
        let now = SystemTime::now();
        let refusal = |plan: Plan| plan.mark(now, &able()).unwrap_err().to_string();
        let options = LockOptions::default().max_hold(HOUR);
        let error = refusal(Plan { options, at_least: 2 * HOUR, ..Plan::new("nightly") });
        assert!(error.contains("at_least \"2h\"") && error.contains("at_most, which is 1h"), "{error}");
        let slot = Some("2001-01-01".parse().unwrap());
        let error = refusal(Plan { slot, ..Plan::new("nightly") });
        assert!(error.contains("older than 7days"), "{error}");
        assert!(refusal(Plan::new(" ")).contains("lock name"));
    }

    #[test]
    fn only_what_has_to_be_kept_needs_a_store_that_can() {
        let now = SystemTime::now();
        let slot = Some(Slot::at(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(u32::MAX))).unwrap());
        assert!(Plan::new("nightly").mark(now, &store()).unwrap().is_none());
        for plan in [Plan { slot, ..Plan::new("nightly") }, Plan { at_least: HOUR, ..Plan::new("nightly") }] {
            let Err(AcquireError::Backend(error)) = plan.mark(now, &store()) else { panic!("it was accepted") };
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(plan.mark(now, &able()).is_ok());
        }
    }

    #[test]
    fn a_skipped_job_says_why() {
        let slot = Some("2026-11-21T03:00".parse().unwrap());
        let skipped = |reason, holder| Plan { slot, ..Plan::new("nightly") }.skipped(reason, holder).to_string();
        assert_eq!(
            skipped(SkipReason::SlotTaken, None),
            "the job \"nightly\" was not run: its slot 2026-11-21T03:00:00Z was taken by somebody"
        );
        assert_eq!(
            skipped(SkipReason::Running, Some(Holder::Foreign)),
            "the job \"nightly\" was not run: it runs or has just run, by something other than leasehold"
        );
    }
}
