//! Work that a schedule calls for on several machines, and one of them does.

use std::pin::pin;
use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use lock_async::{Client, Guard, Mutex};
use lock_host::{Clock, HostClock};

use crate::errors::JobError;
use crate::job::{Crashed, JobOutcome, Plan, SkipReason, Skipped, counted};
use crate::setters::job_setters;

/// Work that a schedule calls for on several machines, and one of them does. Made by [`Kit::job`](super::Kit::job).
///
/// With a [`slot`](Self::slot), the job runs once for each slot, whichever machines call and however late. Without one, it runs
/// unless it runs elsewhere; [`at_least`](Self::at_least) then stops machines whose clocks are late.
///
/// The lock of the job has the job's name, so it shows who runs it. A process that dies frees it when its ttl is over; its slot
/// counts as run, unless [`retry_after_crash`](Self::retry_after_crash) says otherwise.
///
/// Slots are remembered as long as the store keeps its data. A SQLite file forgets them when the machine reboots, and a Redis
/// when it loses its data. Slots and `at_least` need a store that can keep a released lock: `memory:`, `sqlite:` or `redis:`.
///
/// # Examples
/// ```
/// # use lock_kit::nonblocking as leasehold;
/// # use lock_kit::{JobOutcome, Slot};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// # let tonight: Slot = "2099-11-21T03:00".parse()?;
/// use std::time::Duration;
/// use leasehold::Kit;
///
/// let job = locks.job("nightly").slot(tonight).at_most(Duration::from_secs(3600));
/// let sent = job.run(async |guard| format!("report sent, token {}", guard.fencing_token())).await?;
/// assert!(sent.ran().is_some());
/// match job.run(async |_| "sent twice").await? {
///     JobOutcome::Ran(done) => panic!("{done}"),
///     JobOutcome::Skipped(skipped) => println!("{skipped}"), // its slot 2099-11-21T03:00:00Z was taken by pid 4711 on web-3
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
    /// The work is stopped (dropped at its next await point) when the lock is lost, also to [`at_most`](Self::at_most).
    ///
    /// # Errors
    /// `Acquire` if the plan is invalid, the store cannot do it, or the store failed. `NotMarked` if the slot could not be marked.
    /// In both cases the work was not begun. `Lost` if the lock was lost during the work, or before it: then the work was not begun.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and releases the lock in the background. Once the work has begun, or the store was
    /// asked to mark the slot, the slot counts as run, unless [`retry_after_crash`](Self::retry_after_crash) is set.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(&Guard) -> T) -> Result<JobOutcome<T>, JobError> {
        let Held { guard, mark } = match self.begin().await? {
            Ok(held) => held,
            Err(skipped) => return Ok(JobOutcome::Skipped(skipped)),
        };
        let began = HostClock.now();
        let mark = match mark {
            Some((mark, keep)) if self.plan.crashed == Crashed::HasRun => {
                mark.release_keeping(keep).await.map_err(JobError::NotMarked)?;
                None
            }
            Some(_) | None => mark,
        };
        let done = match select(pin!(guard.lost()), pin!(work(&guard))).await {
            Either::Left((lost, _)) => Err(lost),
            // Work that awaits nothing is not stopped.
            Either::Right((done, _)) => guard.check().map(|()| done),
        };
        let done = match mark {
            Some((mark, keep)) if done.is_ok() => counted(done, mark.release_keeping(keep).await),
            Some(_) | None => done,
        };
        let released = match self.plan.keep_after(HostClock.now().since(began)) {
            Some(keep) if done.is_ok() => guard.release_keeping(keep).await,
            Some(_) | None => guard.release().await,
        };
        Ok(JobOutcome::Ran(counted(done, released)?))
    }

    /// Acquires the mark of the slot, and then the lock of the job.
    async fn begin(&self) -> Result<Result<Held, Skipped>, JobError> {
        let mark = match self.plan.mark(SystemTime::now(), &self.client.capabilities())? {
            None => None,
            Some((wanted, keep)) => match self.mutex(wanted).try_acquire_or_holder().await? {
                Ok(mark) => Some((mark, keep)),
                Err(busy) => return Ok(Err(self.plan.skipped(SkipReason::SlotTaken, busy.holder))),
            },
        };
        match self.mutex(self.plan.job()).acquire().await {
            Ok(guard) => Ok(Ok(Held { guard, mark })),
            Err(error) => {
                if let Some((mark, _)) = mark {
                    // If the store does not confirm that, the mark ends with its ttl.
                    _ = mark.release().await;
                }
                Ok(Err(self.plan.not_acquired(error)?))
            }
        }
    }
}

/// What a run holds: the lock of the job, and the mark of its slot with how long it is to be kept.
struct Held {
    guard: Guard,
    mark: Option<(Guard, Duration)>,
}
