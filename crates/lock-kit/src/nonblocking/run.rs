//! A run of a job that has begun.

use std::collections::VecDeque;
use std::time::Duration;

use lock_core::LockName;
use lock_host::{HoldError, note};

use super::{Client, Guard, both};
use crate::errors::JobError;
use crate::first_slot::{FirstMark, FirstSlot};
use crate::job::{self, Crashed, FREED_WHY, JobPlan, Marked, WorkOutcome};
use crate::outcome::{RunEnd, SlotAfter};
use crate::slot::Slot;
use crate::taken_slot::TakenSlot;

/// A run of a job that has begun: the lock of the job is held, and the slot is taken. Made by [`Job::begin`](super::Job::begin).
///
/// Dropping it is a crash: it releases the lock, in async code in the background and otherwise by blocking for at most an operation
/// timeout, and the slot counts as run, unless [`retry_after_crash`](super::Job::retry_after_crash) is set.
#[derive(Debug)]
#[must_use = "a run that is dropped counts as crashed"]
pub struct Run {
    pub(super) client: Client,
    pub(super) plan: JobPlan,
    pub(super) guard: Guard,
    pub(super) mark: Option<Mark>,
    /// Slots before this one, and the locks that mark them, latest first.
    pub(super) earlier: Vec<(Slot, LockName)>,
}

#[both]
impl Run {
    /// The guard of the job's lock. Its token orders the writes of runs, and its loss ends this one.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Missed slots, oldest first: the slots since the last one that has run, as far as the job knows its schedule
    /// ([`every`](super::Job::every), [`previous`](super::Job::previous)) and the store answers. At most 100.
    ///
    /// Sends two requests, and one more for each missed slot. If the store does not remember the first slot of the job, or not for much longer,
    /// this also writes its mark.
    ///
    /// # Cancel safety
    /// Can be dropped at any point, and called again.
    ///
    /// # Blocking
    /// For at most a second for each request.
    pub async fn missed(&self) -> Vec<Slot> {
        let (Some(inspect), Some(this), false) = (self.client.inspect(), self.plan.slot, self.earlier.is_empty())
        else {
            return Vec::new();
        };
        let (mut missed, mut ran) = (VecDeque::new(), None);
        for (slot, mark) in &self.earlier {
            match inspect.holder(mark, TakenSlot::READ_WITHIN).await {
                Ok(None) => missed.push_front(*slot),
                Ok(Some(_)) => {
                    ran = Some(*slot);
                    break;
                }
                Err(_) => return missed.into(),
            }
        }
        match self.first(ran, this).await {
            Some(first) => first.after(missed.into()),
            None => missed.into(),
        }
    }

    /// Ends a run whose work is done: the slot counts as run, and the lock of the job is released.
    ///
    /// # Errors
    /// `Lost` if the lock of the job had already been lost: part of the work may have been done without it. With
    /// [`retry_after_crash`](super::Job::retry_after_crash), even if only the mark of the slot was lost.
    ///
    /// # Cancel safety
    /// Dropping the future drops the run. Unless the store has the mark already, the slot then counts as that of a crash.
    ///
    /// # Blocking
    /// For at most two operation timeouts.
    pub async fn done(self) -> Result<RunEnd, JobError> {
        self.end(WorkOutcome::Done).await
    }

    /// Ends a run whose work has failed: the slot is free, and the lock of the job is not kept for
    /// [`at_least`](super::Job::at_least), so the next machine that starts the job for the slot runs it. Check [`RunEnd::slot`]: if the store did
    /// not confirm that, or cannot free a slot, the slot may count as run.
    ///
    /// # Errors
    /// `Lost` if the lock of the job had already been lost. The slot is freed even then, if the store answers.
    ///
    /// # Cancel safety
    /// Dropping the future drops the run. The slot may be free, or count as that of a crash.
    ///
    /// # Blocking
    /// For at most an operation timeout and a second.
    pub async fn failed(self) -> Result<RunEnd, JobError> {
        self.end(WorkOutcome::Failed).await
    }

    /// Ends a run without a result: it counts as crashed. The same as dropping it, but waits for the store's answer.
    ///
    /// # Errors
    /// As [`Guard::release`].
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock in the background.
    ///
    /// # Blocking
    /// For at most two operation timeouts.
    pub async fn release(self) -> Result<(), HoldError> {
        self.guard.release().await
    }

    /// Says what becomes of the slot, and releases the lock of the job.
    pub(super) async fn end(self, work: WorkOutcome) -> Result<RunEnd, JobError> {
        let (slot, marked) = match (self.mark, work) {
            (None, _) => (SlotAfter::None, Ok(())),
            (Some(Mark::Held { guard, keep }), WorkOutcome::Done) => {
                let kept = guard.release_keeping(keep).await;
                (SlotAfter::HasRun.confirmed(&kept), kept)
            }
            (Some(Mark::Held { guard, .. }), WorkOutcome::Failed) => {
                (SlotAfter::Free.confirmed(&guard.release().await), Ok(()))
            }
            (Some(Mark::Kept(_)), WorkOutcome::Done) => (SlotAfter::HasRun, Ok(())),
            (Some(Mark::Kept(marked)), WorkOutcome::Failed) => (free(&self.client, &marked).await, Ok(())),
        };
        if work == WorkOutcome::Failed {
            self.plan.keep(|_| self.guard.keep_at_least(Duration::ZERO))?;
        }
        let unconfirmed = job::unconfirmed(self.guard.release().await)?;
        job::unconfirmed(marked)?;
        Ok(RunEnd { slot, unconfirmed })
    }

    /// The first slot that the job has run, as far as the store answers, which continues to remember it.
    async fn first(&self, ran: Option<Slot>, this: Slot) -> Option<FirstSlot> {
        let (inspect, name) = (self.client.inspect()?, self.plan.first_mark().ok()?);
        let mark = inspect.holder(&name, TakenSlot::READ_WITHIN).await.ok()?;
        let first = FirstSlot::of(mark.as_ref(), ran, this)?;
        match first.mark() {
            FirstMark::Lasts => return Some(first),
            FirstMark::Missing => {}
            FirstMark::Expiring(token) => {
                let by = note(FirstSlot::AGAIN_WHY).ok()?;
                // If it is not ended, it cannot be set; the next run tries that again.
                _ = inspect.revoke(&name, token, &by, TakenSlot::READ_WITHIN).await;
            }
        }
        let (mark, keep) = self.plan.remembers(first);
        if let Ok(Some(guard)) = self.client.mutex(mark.name).options(mark.options).try_acquire().await {
            _ = guard.release_keeping(keep).await;
        }
        Some(first)
    }
}

/// Frees a slot that is marked.
#[both]
async fn free(client: &Client, Marked { name, token }: &Marked) -> SlotAfter {
    let (Some(inspect), Ok(by)) = (client.inspect(), note(FREED_WHY)) else { return SlotAfter::Unknown };
    SlotAfter::Free.confirmed(&inspect.revoke(name, *token, &by, TakenSlot::READ_WITHIN).await)
}

/// The mark of a slot.
#[derive(Debug)]
pub(super) enum Mark {
    /// Its lock is held, and is to be kept for this time.
    Held { guard: Guard, keep: Duration },
    /// Its lock is kept.
    Kept(Marked),
}

#[both]
impl Mark {
    /// The work is about to begin.
    pub(super) async fn before_work(guard: Guard, keep: Duration, crashed: Crashed) -> Result<Self, JobError> {
        match crashed {
            Crashed::HasRun => {
                let marked = Marked { name: guard.name().clone(), token: guard.fencing_token() };
                guard.release_keeping(keep).await.map_err(JobError::NotMarked)?;
                Ok(Self::Kept(marked))
            }
            Crashed::HasNotRun => {
                // The wait for the lock of the job may have taken longer than the lease: then others may have run the slot.
                guard.check()?;
                Ok(Self::Held { guard, keep })
            }
        }
    }
}
