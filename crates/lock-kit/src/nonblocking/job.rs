//! Work that a schedule calls for on several machines, and one of them does.

use std::pin::pin;
use std::time::SystemTime;

use futures_util::future::{Either, select};
use lock_async::{Client, Guard, Mutex};
use lock_core::{AcquireError, LockName, Lost, TryAcquireError};

use super::run::{Mark, Run};
use crate::errors::JobError;
use crate::job::{Plan, Work, unseen};
use crate::outcome::{Begun, JobOutcome, JobRun, Skipped};
use crate::setters::job_setters;
use crate::taken::Taken;

/// Work that a schedule calls for on several machines, and one of them does. Made by [`Kit::job`](super::Kit::job).
///
/// With a [`slot`](Self::slot), the job runs at most once for each slot, whichever machines call and however late; at least once with
/// [`retry_after_crash`](Self::retry_after_crash). Without one, it runs unless it runs elsewhere; [`at_least`](Self::at_least) then
/// stops machines whose clocks are late.
///
/// The lock of the job has the job's name, so it shows who runs it. A process that dies frees it when its ttl is over; its slot
/// counts as run, unless [`retry_after_crash`](Self::retry_after_crash) says otherwise.
///
/// Slots are remembered as long as the store keeps its data. A SQLite file forgets them when the machine reboots, and a Redis
/// when it loses its data: also after a fail-over, unless `replicas=N` is the number of all replicas. Slots and `at_least` need a
/// store that can keep a released lock: `memory:`, `sqlite:` or `redis:`.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::{self as kit, nonblocking::Kit}; }
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
#[derive(Clone, Debug)]
#[must_use = "a job does nothing until it is run"]
pub struct Job {
    client: Client,
    plan: Plan,
}

impl Job {
    pub(super) fn new(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), plan: Plan::new(name) }
    }

    job_setters!();

    /// Does the work, unless another machine did it or does it. The work gets the guard of the job's lock, and its fencing token.
    ///
    /// The work is stopped (dropped at its next await point) when the lock is lost, also to [`max_hold`](Self::max_hold).
    ///
    /// # Errors
    /// `Acquire` if the plan is invalid, the store cannot do it, or the store failed. `NotMarked` if the slot could not be marked.
    /// In both cases the work was not begun. `Lost` if the lock was lost during the work, or before it: then the work was not begun.
    /// With [`retry_after_crash`](Self::retry_after_crash), the same holds if the mark of the slot was lost before the work.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and releases the lock in the background. Once the work has begun, or the store was
    /// asked to mark the slot, the slot counts as run, unless [`retry_after_crash`](Self::retry_after_crash) is set.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(&Guard) -> T) -> Result<JobOutcome<T>, JobError> {
        self.run_judged(work, |_| Work::Done).await
    }

    /// The same for work that may fail. After work that returns an error, the slot is free, and the lock of the job is not kept for
    /// `at_least`: the next machine that calls for the slot runs it. The outcome says whether the store has [confirmed
    /// that](JobRun::slot); if not, the slot may count as run.
    ///
    /// # Errors
    /// As of [`run`](Self::run). The error of the work is in the outcome.
    ///
    /// # Cancel safety
    /// As of [`run`](Self::run).
    pub async fn try_run<T, E>(
        &self,
        work: impl AsyncFnOnce(&Guard) -> Result<T, E>,
    ) -> Result<JobOutcome<Result<T, E>>, JobError> {
        if self.plan.slot.is_some() && self.client.inspect().is_none() {
            return Err(unseen(&self.client.capabilities()).into());
        }
        self.run_judged(work, Work::of).await
    }

    async fn run_judged<T>(
        &self,
        work: impl AsyncFnOnce(&Guard) -> T,
        judge: fn(&T) -> Work,
    ) -> Result<JobOutcome<T>, JobError> {
        let run = match self.begin().await? {
            Begun::Run(run) => run,
            Begun::Skipped(skipped) => return Ok(JobOutcome::Skipped(skipped)),
        };
        let missed = run.missed().await;
        let value = match under(run.guard(), work).await {
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
    /// This is what [`run`](Self::run) is made of, for work that is not one function. Look at [`Run::guard`] for a loss, and say with
    /// [`Run::done`] or [`Run::failed`] how the work ended. A run that is dropped counts as crashed.
    ///
    /// # Errors
    /// `Acquire` if the plan is invalid, the store cannot do it, or the store failed. `NotMarked` if the slot could not be marked.
    /// `Lost` if the lock was lost before the work can begin; with [`retry_after_crash`](Self::retry_after_crash), also if the mark of the
    /// slot was.
    ///
    /// # Cancel safety
    /// Dropping the future releases what was acquired in the background. Once the store was asked to mark the slot, the slot counts
    /// as run, unless [`retry_after_crash`](Self::retry_after_crash) is set.
    ///
    /// # Examples
    /// ```
    /// # mod leasehold { pub use lock_kit::{self as kit, nonblocking::Kit}; }
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
        let wanted = self.plan.mark(now, &self.client.capabilities())?;
        let earlier = self.plan.earlier(now)?;
        if !earlier.is_empty() && self.client.inspect().is_none() {
            return Err(unseen(&self.client.capabilities()).into());
        }
        let mark = match wanted {
            None => None,
            Some((slot, wanted, keep)) => match self.mutex(wanted).try_acquire_or_holder().await {
                Ok(mark) => Some((mark, keep)),
                Err(TryAcquireError::Busy(busy)) => {
                    let skipped = self.look(self.plan.taken(slot, busy.holder), &busy.name).await?;
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
    async fn look(&self, taken: Taken, mark: &LockName) -> Result<Skipped, AcquireError> {
        let job: LockName = taken.job.parse()?;
        let Some(inspect) = self.client.inspect() else { return Ok(taken.skipped(None, None)) };
        // In this order: a slot is marked after the job was acquired.
        let mark = inspect.holder(mark, Taken::LOOK_WITHIN).await.ok().flatten();
        let job = inspect.holder(&job, Taken::LOOK_WITHIN).await.ok().flatten();
        Ok(taken.skipped(mark, job))
    }
}

/// Works until the lock is lost. Work that awaits nothing is not stopped.
async fn under<T>(guard: &Guard, work: impl AsyncFnOnce(&Guard) -> T) -> Result<T, Lost> {
    match select(pin!(guard.lost()), pin!(work(guard))).await {
        Either::Left((lost, _)) => Err(lost),
        Either::Right((done, _)) => guard.check().map(|()| done),
    }
}
