//! The policy of jobs: what is acquired, what is kept for how long, and what is said about it.

use std::time::{Duration, SystemTime};

use lock_core::{
    Ability, AcquireError, BackendError, Capabilities, Effect, ErrorKind, FencingToken, Holder, Invalid, LockName,
    Lost, Operation,
};
use lock_host::{HoldError, LockOptions};

use crate::earlier_slots::EarlierSlots;
use crate::first_slot::FirstSlot;
use crate::outcome::{SkipReason, Skipped};
use crate::slot::{Mark, Slot};
use crate::taken_slot::TakenSlot;

/// How a job is to run.
#[derive(Clone, Debug)]
pub(crate) struct JobPlan {
    name: String,
    pub(crate) options: LockOptions,
    pub(crate) slot: Option<Slot>,
    pub(crate) at_least: Duration,
    pub(crate) retain: Duration,
    pub(crate) crashed: Crashed,
    pub(crate) earlier: Option<EarlierSlots>,
}

/// Whether a crashed run counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crashed {
    /// As one that has run: it is marked before the work begins.
    HasRun,
    /// As one that has not: it is marked after the work.
    HasNotRun,
}

/// Why the lease of a slot that was marked ends early, for observers.
pub(crate) const FREED_WHY: &str = "its run failed";

/// The outcome of work that ended under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkOutcome {
    /// It is done.
    Done,
    /// It failed, and is to be done again.
    Failed,
}

impl WorkOutcome {
    /// Work that says whether it failed.
    pub(crate) fn of<T, E>(result: &Result<T, E>) -> Self {
        if result.is_ok() { Self::Done } else { Self::Failed }
    }
}

/// The options of a lock, and its name.
#[derive(Debug)]
pub(crate) struct LockRequest {
    pub(crate) name: String,
    pub(crate) options: LockOptions,
}

impl JobPlan {
    pub(crate) fn new(name: &str) -> Self {
        let options = LockOptions::default();
        let (at_least, retain) = (Duration::ZERO, Mark::RETAIN);
        let (slot, crashed, earlier) = (None, Crashed::HasRun, None);
        Self { name: name.to_owned(), options, slot, at_least, retain, crashed, earlier }
    }

    /// The lock that is acquired while the job runs.
    pub(crate) fn job(&self) -> LockRequest {
        let mut options = self.options.clone();
        // A schedule calls again, so a job does not wait.
        options.wait.get_or_insert(Duration::ZERO);
        if let Some(slot) = self.slot {
            options.why = slot.why(&options.why);
        }
        LockRequest { name: self.name.clone(), options }
    }

    /// The slot, what marks it, and for how long it is kept; `None` for a job without slots. Checks all that can be checked
    /// before a request is sent.
    pub(crate) fn mark(
        &self,
        now: SystemTime,
        store: &Capabilities,
    ) -> Result<Option<(Slot, LockRequest, Duration)>, AcquireError> {
        self.check()?;
        if self.slot.is_some() || !self.at_least.is_zero() {
            store.check_ability(Ability::Keep)?;
        }
        let Some(slot) = self.slot else { return Ok(None) };
        let Mark { name, keep } = Mark::of(&self.name, slot, self.retain, now)?;
        // The wait for the lock of the job is no part of the work.
        let mut options = self.options.clone();
        options.max_hold = None;
        options.ttl = Mark::ttl_while_held(options.ttl);
        Ok(Some((slot, LockRequest { name, options }, keep)))
    }

    fn check(&self) -> Result<(), Invalid> {
        self.options.validate()?;
        self.name.parse::<LockName>()?;
        match self.options.max_hold {
            Some(max_hold) if self.at_least > max_hold => Err(Invalid::new(
                "at_least",
                humantime::format_duration(self.at_least),
                format!("it is above max_hold, which is {}", humantime::format_duration(max_hold)),
                "make it shorter, or max_hold longer",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// The slots before this one, and the locks that mark them, latest first.
    pub(crate) fn earlier(&self, now: SystemTime) -> Result<Vec<(Slot, LockName)>, AcquireError> {
        match (&self.earlier, self.slot) {
            (Some(earlier), Some(slot)) => Ok(earlier.before(&self.name, slot, self.retain, now)?),
            (Some(_), None) => {
                let (problem, remedy) = ("it has no slot, but earlier ones", "set the slot that is to run");
                Err(Invalid::new("job", &self.name, problem, remedy).into())
            }
            (None, _) => Ok(Vec::new()),
        }
    }

    /// The name of the lock that remembers the first slot that the job has run.
    pub(crate) fn first_mark(&self) -> Result<LockName, Invalid> {
        Mark::of_first(&self.name).name.parse()
    }

    /// The lock that remembers the first slot that the job has run.
    pub(crate) fn remembers(&self, first: FirstSlot) -> (LockRequest, Duration) {
        let Mark { name, keep } = Mark::of_first(&self.name);
        (LockRequest { name, options: LockOptions::default().why(first.why()) }, keep)
    }

    /// The slot was taken by somebody, of whom the store may show more.
    pub(crate) fn taken(&self, slot: Slot, by: Option<Holder>) -> TakenSlot {
        TakenSlot { job: self.name.clone(), slot, at_least: self.at_least, by }
    }

    /// Has the lock of the job kept for `at_least`, if that is set.
    pub(crate) fn keep(&self, keep: impl FnOnce(Duration) -> Result<(), BackendError>) -> Result<(), AcquireError> {
        if self.at_least.is_zero() { Ok(()) } else { Ok(keep(self.at_least)?) }
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

/// A slot that is marked, as long as it is not known whether its work fails.
#[derive(Debug)]
pub(crate) struct Marked {
    pub(crate) name: LockName,
    pub(crate) token: FencingToken,
}

/// The error of a store that cannot show its locks, for a job that has to read them.
pub(crate) fn unseen(store: &Capabilities) -> AcquireError {
    let message = format!("{} cannot show its locks, as earlier slots and slots that are freed need", store.backend);
    BackendError::new(store.backend, Operation::Inspect, ErrorKind::Unsupported, Effect::None, message).into()
}

/// The error of a release that the store did not confirm. Work under the lock counts even then, if no loss was detected until the
/// release.
pub(crate) fn unconfirmed(released: Result<(), HoldError>) -> Result<Option<BackendError>, Lost> {
    match released.map_err(HoldError::into_loss) {
        Ok(()) => Ok(None),
        Err(Err(error)) => Ok(Some(error)),
        Err(Ok(lost)) => Err(lost),
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

    /// A run that is to take as long as it may is no mistake.
    #[test]
    fn at_least_may_be_max_hold() {
        let plan =
            JobPlan { at_least: HOUR, options: LockOptions::default().max_hold(HOUR), ..JobPlan::new("nightly") };
        assert_eq!(plan.check(), Ok(()));
    }

    /// The lock may be lost after the last check: only the release tells.
    #[test]
    fn work_whose_lock_was_lost_before_the_release_does_not_count() {
        let (name, token) = ("nightly".parse().unwrap(), FencingToken::new(7).unwrap());
        let lost = Lost { name, token, reason: lock_core::LossReason::NotHeld };
        assert_eq!(unconfirmed(Err(HoldError::Lost(lost.clone()))), Err(lost));
        let silent = BackendError::new("test", Operation::Release, ErrorKind::Timeout, Effect::Unknown, "no answer");
        assert_eq!(unconfirmed(Err(HoldError::Backend(silent.clone()))), Ok(Some(silent)));
        assert_eq!(unconfirmed(Ok(())), Ok(None));
    }

    /// The wait for the lock of the job is no part of the work, whose mark is held meanwhile.
    #[test]
    fn the_mark_of_a_slot_is_not_limited_by_max_hold() {
        let now = SystemTime::UNIX_EPOCH + HOUR;
        let options = LockOptions::default().max_hold(Duration::from_millis(100)).wait(HOUR);
        let plan = JobPlan { slot: Some(Slot::at(now).unwrap()), options, ..JobPlan::new("nightly") };
        let (_, mark, _) = plan.mark(now, &able()).unwrap().unwrap();
        assert_eq!(mark.options.max_hold, None);
        assert_eq!(plan.job().options.max_hold, Some(Duration::from_millis(100)));
    }

    #[test]
    fn bad_plans_are_refused_before_anything_is_sent() {
        let now = SystemTime::now();
        let refusal = |plan: JobPlan| plan.mark(now, &able()).unwrap_err().to_string();
        let options = LockOptions::default().max_hold(HOUR);
        let error = refusal(JobPlan { options, at_least: 2 * HOUR, ..JobPlan::new("nightly") });
        assert!(error.contains("at_least \"2h\"") && error.contains("max_hold, which is 1h"), "{error}");
        let slot = Some("2001-01-01".parse().unwrap());
        let error = refusal(JobPlan { slot, ..JobPlan::new("nightly") });
        assert!(error.contains("older than 7days"), "{error}");
        assert!(refusal(JobPlan::new(" ")).contains("lock name"));
    }

    #[test]
    fn only_what_has_to_be_kept_needs_a_store_that_can() {
        let now = SystemTime::now();
        let slot = Some(Slot::at(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(u32::MAX))).unwrap());
        assert!(JobPlan::new("nightly").mark(now, &store()).unwrap().is_none());
        for plan in [JobPlan { slot, ..JobPlan::new("nightly") }, JobPlan { at_least: HOUR, ..JobPlan::new("nightly") }]
        {
            let Err(AcquireError::Backend(error)) = plan.mark(now, &store()) else { panic!("it was accepted") };
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(plan.mark(now, &able()).is_ok());
        }
    }
}
