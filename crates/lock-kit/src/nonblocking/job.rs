//! Scheduled work that one of several machines does.

use std::time::{Duration, SystemTime};

use lock_core::{AcquireError, LockName, TryAcquireError};
use lock_host::Setting;

use super::run::{Mark, Run};
use super::waiting::until_lost;
use super::{Client, Guard, Mutex, both};
use crate::earlier_slots::EarlierSlots;
use crate::errors::JobError;
use crate::job::{Crashed, JobPlan, LockRequest, WorkOutcome, unseen};
use crate::outcome::{Begun, JobOutcome, JobRun, Skipped};
use crate::slot::Slot;
use crate::taken_slot::TakenSlot;

/// Scheduled work that one of several machines does. Made by [`Kit::job`](super::Kit::job). This is not a scheduler: the schedule of
/// each machine starts the job, and this decides which machine does the work.
///
/// With a [`slot`](Self::slot), the job runs at most once per slot, whichever machines start it and however late, while the store keeps its
/// data; with [`retry_after_crash`](Self::retry_after_crash), at least once. Without a slot, it runs unless it runs elsewhere;
/// [`at_least`](Self::at_least) then stops machines whose clocks are late.
///
/// The lock of the job has the job's name, so operators see the machine that runs it. If a process dies, the lock is free within one ttl; the
/// slot counts as run, unless [`retry_after_crash`](Self::retry_after_crash) is set.
///
/// A SQLite file forgets slots when the machine reboots, and a Redis when it loses its data. That includes a fail-over, unless `replicas=N`
/// is the number of all replicas. Slots and `at_least` need a store with the ability [`Keep`](lock_core::Ability::Keep): all stores
/// except ZooKeeper and a quorum.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::{self as kit, nonblocking, nonblocking::Kit}; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// use std::time::Duration;
/// use leasehold::Kit;
/// use leasehold::kit::{JobOutcome, Slot};
///
/// let tonight: Slot = "2099-11-21T03:00".parse()?;
/// let job = locks.job("nightly").slot(tonight).max_hold(Duration::from_secs(3600));
/// let sent = job.run(async |guard| format!("report sent, token {}", guard.fencing_token())).await?;
/// assert!(sent.ran().is_some());
/// match job.run(async |_| "sent twice").await? {
///     JobOutcome::Ran(done) => panic!("{done:?}"),
///     JobOutcome::Skipped(skipped) => println!("{skipped}"), // its slot 2099-11-21T03:00:00Z has run, by pid 4711 on web-3
/// }
/// # Ok(())
/// # }
/// ```
#[both]
#[derive(Clone, Debug)]
#[must_use = "a job does nothing until it is run"]
pub struct Job {
    client: Client,
    plan: JobPlan,
}

#[both]
impl Job {
    pub(super) fn new(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), plan: JobPlan::new(name) }
    }

    /// Sets the slot of this run: the scheduled time. Over all machines, the job runs once per slot.
    ///
    /// The store remembers the slot in a lock of its own, whose name is that of the job, `@` and the slot. Clocks matter only for
    /// slots that are too old: see [`retain`](Self::retain).
    pub fn slot(mut self, slot: Slot) -> Self {
        self.plan.slot = Some(slot);
        self
    }

    /// Sets for how long slots are remembered; 7 days if not set. An older slot, by the clock of this machine, is an error. The store
    /// remembers slots a day longer by its own clock, so clocks may be wrong by up to a day.
    pub fn retain(mut self, retain: Duration) -> Self {
        self.plan.retain = retain;
        self
    }

    /// Lets another machine run the slot if the run ends without a result: its process dies or loses the lock, or the
    /// work panics. Then a slot may be run more than once, and partly. The same is true if the store does not confirm the
    /// mark when the work is done. Without this option, such a slot counts as run.
    ///
    /// Work that returns an error has a result: with [`run`](Self::run), its slot counts as run, with or without this. To run it
    /// again, use [`try_run`](Self::try_run).
    pub fn retry_after_crash(mut self) -> Self {
        self.plan.crashed = Crashed::HasNotRun;
        self
    }

    /// Sets the time between the slots of the schedule, in whole seconds. The run of a slot then reports [missed
    /// slots](crate::JobRun::missed) before it, which costs two requests before the work begins, and one more for
    /// each missed slot. They are counted from the first slot that the job has run, so a new job has missed none. That slot is remembered for a
    /// year, and for half a year after each run that has this setting.
    pub fn every(mut self, span: Duration) -> Self {
        self.plan.earlier = Some(EarlierSlots::Every(span));
        self
    }

    /// As [`every`](Self::every), for a schedule whose slots are not evenly spaced: some of the slots before the
    /// one that is to run, such as the previous one. A missed slot of the list is reported only if no later one has run.
    pub fn previous(mut self, slots: impl IntoIterator<Item = Slot>) -> Self {
        self.plan.earlier = Some(EarlierSlots::Slots(slots.into_iter().collect()));
        self
    }

    /// Sets the least time between the starts of two runs, even if the work is done sooner. This is for schedules without
    /// slots, on machines whose clocks differ by less than that. The time also counts if
    /// the work panics or is dropped, or the client is closed. If the process or machine crashes, the lock is free within one ttl. To
    /// cover crashes, set a `ttl` that is as long.
    pub fn at_least(mut self, at_least: Duration) -> Self {
        self.plan.at_least = at_least;
        self
    }

    ::lock_host::option_setters!(all);

    ::lock_host::option_setters!(
        each "Sets how long to wait for a run in progress; not at all if not set. A taken slot is skipped without a wait."
    );

    ::lock_host::option_setters!(on_unavailable);

    fn set(mut self, setting: Setting) -> Self {
        self.plan.options.apply(setting);
        self
    }

    fn mutex(&self, request: LockRequest) -> Mutex {
        self.client.mutex(request.name).options(request.options)
    }

    /// Does the work, unless another machine did it or does it. The work gets the guard of the job's lock, with its fencing token.
    ///
    /// # Errors
    /// `Acquire` if the plan is invalid, the store does not support it, or the store failed. `NotMarked` if the slot could not be marked.
    /// In both cases the work was not begun. `Lost` if the lock was lost during the work, for instance to [`max_hold`](Self::max_hold), or
    /// before it: then the work was not begun.
    /// With [`retry_after_crash`](Self::retry_after_crash), the same is true if the mark of the slot was lost before the work.
    ///
    /// # Cancel safety
    /// The work is stopped (dropped at its next await point) when the lock is lost. Dropping the future drops the work, and releases the
    /// lock in the background. Once the work has begun, or the store was asked to mark the slot, the slot counts as run, unless
    /// [`retry_after_crash`](Self::retry_after_crash) is set.
    ///
    /// # Blocking
    /// For as long as the work takes, and for a few operation timeouts; before that for the [`wait`](Self::wait). A thread cannot be
    /// stopped: work that takes long has to [`check`](lock_host::Proof::check) the guard, or to pass its [`watch`](Guard::watch) to a
    /// thread that can stop it.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(&Guard) -> T) -> Result<JobOutcome<T>, JobError> {
        self.run_judged(work, |_| WorkOutcome::Done).await
    }

    /// As [`run`](Self::run), for work that may fail. After work that returns an error, the slot is free, and the lock of the job is not kept
    /// for `at_least`: the next machine that starts the job for this slot runs it. The outcome says whether the store has [confirmed
    /// that](JobRun::slot); if not, the slot may count as run.
    ///
    /// # Errors
    /// As of [`run`](Self::run). The error of the work is in the outcome.
    ///
    /// # Cancel safety
    /// As of [`run`](Self::run).
    ///
    /// # Blocking
    /// As [`run`](Self::run).
    pub async fn try_run<T, E>(
        &self,
        work: impl AsyncFnOnce(&Guard) -> Result<T, E>,
    ) -> Result<JobOutcome<Result<T, E>>, JobError> {
        if self.plan.slot.is_some() && self.client.inspect().is_none() {
            return Err(unseen(&self.client.capabilities()).into());
        }
        self.run_judged(work, WorkOutcome::of).await
    }

    async fn run_judged<T>(
        &self,
        work: impl AsyncFnOnce(&Guard) -> T,
        judge: fn(&T) -> WorkOutcome,
    ) -> Result<JobOutcome<T>, JobError> {
        let run = match self.begin().await? {
            Begun::Run(run) => run,
            Begun::Skipped(skipped) => return Ok(JobOutcome::Skipped(skipped)),
        };
        let missed = run.missed().await;
        let done = until_lost(run.guard(), work).await;
        // Work that awaits nothing is not stopped, and neither is a thread.
        let value = match done.and_then(|done| run.guard().check().map(|()| done)) {
            Ok(value) => value,
            Err(lost) => {
                // The loss is what the caller has to know.
                _ = run.release().await;
                return Err(lost.into());
            }
        };
        let slot = run.end(judge(&value)).await?.slot;
        Ok(JobOutcome::Ran(JobRun { value, slot, missed }))
    }

    /// Begins a run, unless another machine runs the job or has run it: acquires the lock of the job, and marks the slot.
    ///
    /// [`run`](Self::run) is made of this; use it for work that is not one function. Check [`Run::guard`] for a loss, and end the run with
    /// [`Run::done`] or [`Run::failed`]. A run that is dropped counts as crashed.
    ///
    /// # Errors
    /// `Acquire` if the plan is invalid, the store does not support it, or the store failed. `NotMarked` if the slot could not be marked.
    /// `Lost` if the lock was lost before the work can begin; with [`retry_after_crash`](Self::retry_after_crash), even if only the mark of
    /// the slot was.
    ///
    /// # Cancel safety
    /// Dropping the future releases what was acquired in the background. Once the store was asked to mark the slot, the slot counts
    /// as run, unless [`retry_after_crash`](Self::retry_after_crash) is set.
    ///
    /// # Blocking
    /// For the [`wait`](Self::wait), and a few operation timeouts.
    ///
    /// # Examples
    /// ```
    /// # mod leasehold { pub use lock_kit::{self as kit, nonblocking, nonblocking::Kit}; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use leasehold::Kit;
    /// use leasehold::kit::{Begun, Slot};
    ///
    /// let tonight: Slot = "2099-11-21T03:00".parse()?;
    /// match locks.job("nightly").slot(tonight).begin().await? {
    ///     Begun::Run(run) => {
    ///         println!("send the report with token {}", run.guard().fencing_token());
    ///         run.done().await?;
    ///     }
    ///     Begun::Skipped(skipped) => println!("{skipped}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn begin(&self) -> Result<Begun<Run>, JobError> {
        let now = SystemTime::now();
        let request = self.plan.mark(now, &self.client.capabilities())?;
        let earlier = self.plan.earlier(now)?;
        if !earlier.is_empty() && self.client.inspect().is_none() {
            return Err(unseen(&self.client.capabilities()).into());
        }
        let mark = match request {
            None => None,
            Some((slot, request, keep)) => match self.mutex(request).try_acquire_or_holder().await {
                Ok(mark) => Some((mark, keep)),
                Err(TryAcquireError::Busy(busy)) => {
                    let skipped = self.why_taken(self.plan.taken(slot, busy.holder), &busy.name).await?;
                    return Ok(Begun::Skipped(skipped));
                }
                Err(TryAcquireError::Failed(error)) => return Err(error.into()),
            },
        };
        let guard = match self.mutex(self.plan.job()).acquire().await {
            Ok(guard) => guard,
            Err(error) => {
                if let Some((mark, _)) = mark {
                    // If the store does not confirm that, the mark ends with its ttl.
                    _ = mark.release().await;
                }
                return Ok(Begun::Skipped(self.plan.not_acquired(error)?));
            }
        };
        let mark = match mark {
            Some((mark, keep)) => Some(Mark::before_work(mark, keep, self.plan.crashed).await?),
            None => None,
        };
        self.plan.keep(|time| guard.keep_at_least(time))?;
        // Marking the slot may have taken longer than the lease lasted.
        guard.check()?;
        Ok(Begun::Run(Run { client: self.client.clone(), plan: self.plan.clone(), guard, mark, earlier }))
    }

    /// How far the run of a slot is that was taken.
    async fn why_taken(&self, taken: TakenSlot, mark: &LockName) -> Result<Skipped, AcquireError> {
        let job: LockName = taken.job.parse()?;
        let Some(inspect) = self.client.inspect() else { return Ok(taken.skipped(None, None)) };
        // In this order: a slot is marked after the job was acquired.
        let mark = inspect.holder(mark, TakenSlot::READ_WITHIN).await.ok().flatten();
        let job = inspect.holder(&job, TakenSlot::READ_WITHIN).await.ok().flatten();
        Ok(taken.skipped(mark, job))
    }
}
