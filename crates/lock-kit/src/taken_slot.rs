//! Looks up why a slot is taken: it has run, runs now, or is held for another reason.

use std::time::Duration;

use lock_core::inspect::Entry;
use lock_core::{Holder, Note};

use crate::outcome::{SkipReason, Skipped};
use crate::slot::Slot;

/// A slot that another machine has taken, and what the store shows of it.
///
/// The lock of the slot is read first, and then the lock of the job. While the slot runs, the job is held by a run that
/// [names it](Slot::why), from before the slot is marked until after.
#[derive(Clone, Debug)]
pub(crate) struct TakenSlot {
    /// The name of the job.
    pub(crate) job: String,
    /// The slot.
    pub(crate) slot: Slot,
    /// For how long the lock of the job may be kept after a run.
    pub(crate) at_least: Duration,
    /// The machine that took it.
    pub(crate) by: Option<Holder>,
}

impl TakenSlot {
    /// How long the store may take to show a lock.
    pub(crate) const READ_WITHIN: Duration = Duration::from_secs(1);

    /// Why the slot is not run here. `mark` and `job` are what the store shows of the two locks, in this order; `None` if it shows
    /// nothing.
    pub(crate) fn skipped(self, mark: Option<Entry>, job: Option<Entry>) -> Skipped {
        let (reason, holder) = match (mark, job.and_then(|entry| self.run_of_slot(entry))) {
            (_, Some(run)) if self.at_least.is_zero() => (SkipReason::SlotRuns, Some(run)),
            (Some(mark), None) if Slot::marked_by(&mark).is_some() => (SkipReason::SlotHasRun, Some(mark.holder)),
            (_, _) => (SkipReason::SlotTaken, self.by),
        };
        Skipped { job: self.job, slot: Some(self.slot), reason, holder }
    }

    /// The holder of the job, without the slot, if that is a run of this slot.
    fn run_of_slot(&self, job: Entry) -> Option<Holder> {
        let Holder::Leasehold { note, tokens } = job.holder else { return None };
        let (slot, why) = Slot::of_why(note.why())?;
        let place = note.to_wire().strip_suffix(note.why())?;
        (slot == self.slot).then(|| Holder::Leasehold { tokens, note: Note::from_wire(&format!("{place}{why}")) })
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{LockName, TokenRange, Width};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn held(name: &str, above: u64, why: &str, left: Duration) -> Entry {
        let note = Note::new("web-3", 4711, why).unwrap();
        let tokens = TokenRange::above(above, Width::ONE).unwrap();
        let name: LockName = name.parse().unwrap();
        Entry::exclusive(name, Holder::Leasehold { tokens, note }, Some(left), 0)
    }

    fn skipped(at_least: Duration, mark: Option<Duration>, runs: Option<&str>) -> Skipped {
        let slot: Slot = "2026-11-21T03:00".parse().unwrap();
        let mark = mark.map(|left| held("nightly@2026-11-21T03:00:00Z", 2, "the report", left));
        let runs = runs.map(|slot| slot.parse::<Slot>().unwrap().why("the report"));
        let job = runs.map(|why| held("nightly", 6, &why, HOUR));
        let by = mark.as_ref().map(|entry| entry.holder.clone());
        TakenSlot { job: "nightly".to_owned(), slot, at_least, by }.skipped(mark, job)
    }

    #[test]
    fn what_is_shown_tells_a_slot_that_has_run_from_one_that_runs() {
        let (this, other) = ("2026-11-21T03:00", "2026-11-20T03:00");
        let (marked, held) = (Some(7 * 24 * HOUR), Some(HOUR));
        for (mark, runs, reason, token) in [
            (marked, None, SkipReason::SlotHasRun, None),
            (marked, Some(other), SkipReason::SlotHasRun, None),
            (marked, Some(this), SkipReason::SlotRuns, Some(7)),
            // It is marked at the end of its run.
            (held, Some(this), SkipReason::SlotRuns, Some(7)),
            // It waits for the other one to end, and may give up.
            (held, Some(other), SkipReason::SlotTaken, None),
            (held, None, SkipReason::SlotTaken, None),
            // It is free by now.
            (None, None, SkipReason::SlotTaken, None),
        ] {
            let skipped = skipped(Duration::ZERO, mark, runs);
            let case = (skipped.reason, skipped.token().map(|token| token.get()));
            assert_eq!(case, (reason, token), "{mark:?} {runs:?}");
            if let Some(Holder::Leasehold { note, .. }) = skipped.holder {
                assert_eq!(note.to_string(), "pid 4711 on web-3 (the report)");
            }
        }
        assert_eq!(skipped(HOUR, marked, None).reason, SkipReason::SlotHasRun);
        let kept = skipped(HOUR, marked, Some(this));
        assert_eq!(kept.reason, SkipReason::SlotTaken, "it runs, or has run and its lock is kept");
    }
}
