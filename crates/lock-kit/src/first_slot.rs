//! The first slot that a job has run, which its store remembers: nobody has missed those before it.

use std::time::Duration;

use lock_core::inspect::Entry;
use lock_core::{FencingToken, Holder};

use crate::slot::{Mark, Slot};

/// The first slot that a job has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstSlot {
    slot: Slot,
    mark: FirstMark,
}

/// The step that makes the store continue to remember the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstMark {
    /// Nothing: its mark lasts.
    Lasts,
    /// It is to be marked.
    Missing,
    /// The mark with this token is to be ended, and set again.
    Expiring(FencingToken),
}

impl FirstSlot {
    /// Why a mark is ended that is set again, for observers.
    pub(crate) const AGAIN_WHY: &str = "it is set again, to last longer";

    /// The first slot, from its [mark](Mark::of_first) if the store shows one. Otherwise it is `ran`, the earlier slot that is known
    /// to have run, or else `this`, which runs. `None` if the mark names no slot.
    pub(crate) fn of(mark: Option<&Entry>, ran: Option<Slot>, this: Slot) -> Option<Self> {
        let Some(mark) = mark else { return Some(Self { slot: ran.unwrap_or(this), mark: FirstMark::Missing }) };
        let Holder::Leasehold { tokens, note } = &mark.holder else { return None };
        let (slot, _) = Slot::of_why(note.why())?;
        let mark = if is_expiring(mark.remaining) { FirstMark::Expiring(tokens.high()) } else { FirstMark::Lasts };
        Some(Self { slot, mark })
    }

    /// The next step for its mark.
    pub(crate) fn mark(self) -> FirstMark {
        self.mark
    }

    /// The reason of its mark, which names it.
    pub(crate) fn why(self) -> String {
        self.slot.why("")
    }

    /// Those of the slots that came after it.
    pub(crate) fn after(self, mut missed: Vec<Slot>) -> Vec<Slot> {
        missed.retain(|slot| *slot > self.slot);
        missed
    }
}

/// Whether a mark is to be set again, so that it lasts while the job runs at least once in half of its time.
fn is_expiring(remaining: Option<Duration>) -> bool {
    remaining.is_some_and(|left| left < Mark::FIRST_KEPT / 2)
}

#[cfg(test)]
mod tests {
    use lock_core::{Note, TokenRange, Width};

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn slot(day: u32) -> Slot {
        format!("2026-11-{day:02}").parse().unwrap()
    }

    fn mark(note: &str, remaining: Option<Duration>) -> Entry {
        let tokens = TokenRange::above(6, Width::ONE).unwrap();
        let holder = Holder::Leasehold { tokens, note: Note::from_wire(note) };
        Entry::exclusive(Mark::of_first("nightly").name.parse().unwrap(), holder, remaining, 0)
    }

    #[test]
    fn a_slot_that_nobody_remembers_is_the_one_that_has_run_before_or_this_one() {
        let first = |ran| FirstSlot::of(None, ran, slot(20)).unwrap();
        assert_eq!(first(None), FirstSlot { slot: slot(20), mark: FirstMark::Missing });
        assert_eq!(first(Some(slot(18))), FirstSlot { slot: slot(18), mark: FirstMark::Missing });
        assert_eq!(first(Some(slot(18))).after(vec![slot(17), slot(18), slot(19)]), [slot(19)]);
        assert_eq!(first(None).after(vec![slot(18), slot(19)]), []);
    }

    #[test]
    fn a_mark_names_the_slot_and_is_set_again_in_its_second_half() {
        let note = "4711@web-3 slot 2026-11-17T00:00:00Z";
        let first = |left| FirstSlot::of(Some(&mark(note, Some(left))), Some(slot(18)), slot(20)).unwrap();
        assert_eq!(first(183 * DAY), FirstSlot { slot: slot(17), mark: FirstMark::Lasts });
        let token = FencingToken::new(7).unwrap();
        assert_eq!(first(182 * DAY), FirstSlot { slot: slot(17), mark: FirstMark::Expiring(token) });
        assert_eq!(FirstSlot::of(Some(&mark("4711@web-3", Some(DAY))), None, slot(20)), None);
    }
}
