//! Work that a schedule calls for on several machines, and one of them does.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use lock_blocking::{Client, Guard, Mutex};
use lock_core::{AcquireError, LockName, Lost};
use lock_host::note;

use crate::errors::JobError;
use crate::first::{First, FirstMark};
use crate::job::{Crashed, Marked, Plan, Work, counted, unseen};
use crate::outcome::{JobOutcome, JobRun, Skipped, SlotAfter};
use crate::setters::job_setters;
use crate::slot::Slot;
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
/// # use lock_kit::blocking as leasehold;
/// # use lock_kit::{JobOutcome, Slot};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
/// # let tonight: Slot = "2099-11-21T03:00".parse()?;
/// use std::time::Duration;
/// use leasehold::Kit;
///
/// let job = locks.job("nightly").slot(tonight).at_most(Duration::from_secs(3600));
/// let sent = job.run(|guard| format!("report sent, token {}", guard.fencing_token()))?;
/// assert!(sent.ran().is_some());
/// match job.run(|_| "sent twice")? {
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
    /// A thread cannot be stopped: work that takes long has to [`check`](lock_host::Proof::check) the guard, or to pass its
    /// [`watch`](Guard::watch) to a thread that can stop it.
    ///
    /// # Errors
    /// `Acquire` if the plan is invalid, the store cannot do it, or the store failed. `NotMarked` if the slot could not be marked.
    /// In both cases the work was not begun. `Lost` if the lock was lost during the work, also to [`at_most`](Self::at_most), or
    /// before it: then the work was not begun.
    /// With [`retry_after_crash`](Self::retry_after_crash), the same holds if the mark of the slot was lost before the work.
    ///
    /// # Blocking
    /// For as long as the work takes, and for a few operation timeouts; before that for the [`wait`](Self::wait).
    pub fn run<T>(&self, work: impl FnOnce(&Guard) -> T) -> Result<JobOutcome<T>, JobError> {
        self.run_judged(work, |_| Work::Done)
    }

    /// The same for work that may fail. After work that returns an error, the slot is free, and the lock of the job is not kept for
    /// `at_least`: the next machine that calls for the slot runs it. The outcome says whether the store has [confirmed
    /// that](JobRun::slot); if not, the slot may count as run.
    ///
    /// # Errors
    /// As of [`run`](Self::run). The error of the work is in the outcome.
    ///
    /// # Blocking
    /// As [`run`](Self::run).
    pub fn try_run<T, E>(
        &self,
        work: impl FnOnce(&Guard) -> Result<T, E>,
    ) -> Result<JobOutcome<Result<T, E>>, JobError> {
        if self.plan.slot.is_some() && self.client.inspect().is_none() {
            return Err(unseen(&self.client.capabilities()).into());
        }
        self.run_judged(work, Work::of)
    }

    fn run_judged<T>(&self, work: impl FnOnce(&Guard) -> T, judge: fn(&T) -> Work) -> Result<JobOutcome<T>, JobError> {
        let Held { guard, mark, earlier } = match self.begin()? {
            Ok(held) => held,
            Err(skipped) => return Ok(JobOutcome::Skipped(skipped)),
        };
        let mark = match mark {
            Some(mark) => Some(mark.before_work(self.plan.crashed)?),
            None => None,
        };
        let missed = self.missed(earlier);
        self.plan.keep(self.plan.at_least, |time| guard.keep_at_least(time))?;
        // Marking the slot may have taken longer than the lease lasted.
        let done = guard.check().map(|()| work(&guard)).and_then(|done| guard.check().map(|()| done));
        let ended = done.as_ref().ok().map(judge);
        let (done, slot) = match mark {
            Some(mark) => self.settle(mark, done, ended),
            None => (done, SlotAfter::None),
        };
        if ended == Some(Work::Failed) {
            self.plan.keep(Duration::ZERO, |time| guard.keep_at_least(time))?;
        }
        let released = guard.release();
        let value = counted(done, released)?;
        Ok(JobOutcome::Ran(JobRun { value, slot, missed }))
    }

    /// Acquires the mark of the slot, and then the lock of the job.
    fn begin(&self) -> Result<Result<Held, Skipped>, JobError> {
        let now = SystemTime::now();
        let wanted = self.plan.mark(now, &self.client.capabilities())?;
        let earlier = self.plan.earlier(now)?;
        if !earlier.is_empty() && self.client.inspect().is_none() {
            return Err(unseen(&self.client.capabilities()).into());
        }
        let mark = match wanted {
            None => None,
            Some((slot, wanted, keep)) => match self.mutex(wanted).try_acquire_or_holder()? {
                Ok(guard) => Some(Mark::Held { guard, keep }),
                Err(busy) => return Ok(Err(self.look(self.plan.taken(slot, busy.holder), &busy.name)?)),
            },
        };
        match self.mutex(self.plan.job()).acquire() {
            Ok(guard) => Ok(Ok(Held { guard, mark, earlier })),
            Err(error) => {
                if let Some(Mark::Held { guard, .. }) = mark {
                    // If the store does not confirm that, the mark ends with its ttl.
                    _ = guard.release();
                }
                Ok(Err(self.plan.not_acquired(error)?))
            }
        }
    }

    /// How far the run of a slot is that was taken.
    fn look(&self, taken: Taken, mark: &LockName) -> Result<Skipped, AcquireError> {
        let job: LockName = taken.job.parse()?;
        let Some(inspect) = self.client.inspect() else { return Ok(taken.skipped(None, None)) };
        // In this order: a slot is marked after the job was acquired.
        let mark = inspect.holder(mark, Taken::LOOK_WITHIN).ok().flatten();
        let job = inspect.holder(&job, Taken::LOOK_WITHIN).ok().flatten();
        Ok(taken.skipped(mark, job))
    }

    /// The earlier slots that nobody has run, oldest first, as far as the store answers.
    fn missed(&self, earlier: Vec<(Slot, LockName)>) -> Vec<Slot> {
        let (Some(inspect), Some(this), false) = (self.client.inspect(), self.plan.slot, earlier.is_empty()) else {
            return Vec::new();
        };
        let (mut missed, mut ran) = (VecDeque::new(), None);
        for (slot, mark) in earlier {
            match inspect.holder(&mark, Taken::LOOK_WITHIN) {
                Ok(None) => missed.push_front(slot),
                Ok(Some(_)) => {
                    ran = Some(slot);
                    break;
                }
                Err(_) => return missed.into(),
            }
        }
        match self.first(ran, this) {
            Some(first) => first.after(missed.into()),
            None => missed.into(),
        }
    }

    /// The first slot that the job has run, as far as the store answers, which goes on to remember it.
    fn first(&self, ran: Option<Slot>, this: Slot) -> Option<First> {
        let (inspect, name) = (self.client.inspect()?, self.plan.first_mark().ok()?);
        let mark = inspect.holder(&name, Taken::LOOK_WITHIN).ok()?;
        let first = First::of(mark.as_ref(), ran, this)?;
        match first.mark() {
            FirstMark::Lasts => return Some(first),
            FirstMark::Missing => {}
            FirstMark::Wanes(token) => {
                let by = note(First::AGAIN_WHY).ok()?;
                // If it is not ended, it cannot be set; the next run tries that again.
                _ = inspect.revoke(&name, token, &by, Taken::LOOK_WITHIN);
            }
        }
        let (mark, keep) = self.plan.remembers(first);
        if let Ok(Some(guard)) = self.mutex(mark).try_acquire() {
            _ = guard.release_keeping(keep);
        }
        Some(first)
    }

    /// Marks the slot after work that is done, if it is not marked yet, and frees it after work that failed.
    fn settle<T>(&self, mark: Mark, done: Result<T, Lost>, ended: Option<Work>) -> (Result<T, Lost>, SlotAfter) {
        match (mark, ended) {
            (Mark::Held { guard, keep }, Some(Work::Done)) => {
                let released = guard.release_keeping(keep);
                let slot = SlotAfter::HasRun.confirmed(&released);
                (counted(done, released), slot)
            }
            (Mark::Held { guard, .. }, Some(Work::Failed)) => (done, SlotAfter::Free.confirmed(&guard.release())),
            (Mark::Kept(marked), Some(Work::Failed)) => (done, self.free(&marked)),
            (Mark::Held { .. }, None) => (done, SlotAfter::Unknown),
            (Mark::Kept(_), Some(Work::Done) | None) => (done, SlotAfter::HasRun),
        }
    }

    /// Frees a slot that is marked.
    fn free(&self, Marked { name, token }: &Marked) -> SlotAfter {
        let (Some(inspect), Ok(by)) = (self.client.inspect(), note(SlotAfter::FREED_WHY)) else {
            return SlotAfter::Unknown;
        };
        SlotAfter::Free.confirmed(&inspect.revoke(name, *token, &by, Taken::LOOK_WITHIN))
    }
}

/// What a run holds: the lock of the job, and the mark of its slot. And earlier slots, latest first.
struct Held {
    guard: Guard,
    mark: Option<Mark>,
    earlier: Vec<(Slot, LockName)>,
}

/// The mark of a slot.
enum Mark {
    /// Its lock is held, and is to be kept for this time.
    Held { guard: Guard, keep: Duration },
    /// Its lock is kept.
    Kept(Marked),
}

impl Mark {
    /// The work is about to begin.
    fn before_work(self, crashed: Crashed) -> Result<Self, JobError> {
        match (self, crashed) {
            (Self::Held { guard, keep }, Crashed::HasRun) => {
                let marked = Marked { name: guard.name().clone(), token: guard.fencing_token() };
                guard.release_keeping(keep).map_err(JobError::NotMarked)?;
                Ok(Self::Kept(marked))
            }
            (Self::Held { guard, keep }, Crashed::HasNotRun) => {
                // The wait for the lock of the job may have taken longer than the lease: then others may have run the slot.
                guard.check()?;
                Ok(Self::Held { guard, keep })
            }
            (Self::Kept(marked), Crashed::HasRun | Crashed::HasNotRun) => Ok(Self::Kept(marked)),
        }
    }
}
