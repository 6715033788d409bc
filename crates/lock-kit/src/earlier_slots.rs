//! Finds missed slots: earlier slots for which no job has run.

use std::time::{Duration, SystemTime};

use lock_core::{Invalid, LockName};

use crate::slot::{Mark, Slot};

/// Which slots a schedule has before the one that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EarlierSlots {
    /// One each time this much time has passed.
    Every(Duration),
    /// These.
    Slots(Vec<Slot>),
}

impl EarlierSlots {
    /// How many of them are checked. Chosen: nobody reads more.
    pub(crate) const CHECKED_MAX: usize = 100;

    /// The slots before this one, and the locks that mark them, latest first. Those that may be forgotten are left out.
    ///
    /// # Errors
    /// `Invalid` if they are not before the slot, or not at whole seconds.
    pub(crate) fn before(
        &self,
        job: &str,
        slot: Slot,
        retain: Duration,
        now: SystemTime,
    ) -> Result<Vec<(Slot, LockName)>, Invalid> {
        let slots = self.slots(slot)?;
        let mark = |slot| Mark::of(job, slot, retain, now).ok().map(|mark| (slot, mark.name));
        let named = |(slot, name): (Slot, String)| Ok((slot, name.parse()?));
        slots.into_iter().take(Self::CHECKED_MAX).map_while(mark).map(named).collect()
    }

    fn slots(&self, slot: Slot) -> Result<Vec<Slot>, Invalid> {
        match self {
            Self::Every(span) => every(*span, slot),
            Self::Slots(slots) => latest_first(slots, slot),
        }
    }
}

impl Slot {
    /// Refuses what no run can be for: a slot that is older than `retain`, and slots before it that no schedule has. A
    /// job refuses the same before it sends anything; this is for callers without a client yet.
    ///
    /// # Errors
    /// `Invalid`, which says what to change.
    pub fn check(self, retain: Duration, every: Option<Duration>, previous: &[Self]) -> Result<(), Invalid> {
        Mark::of("job", self, retain, SystemTime::now())?;
        let earlier = every.map_or_else(|| EarlierSlots::Slots(previous.to_vec()), EarlierSlots::Every);
        earlier.slots(self).map(drop)
    }
}

fn every(span: Duration, slot: Slot) -> Result<Vec<Slot>, Invalid> {
    if span.is_zero() || span.subsec_nanos() > 0 {
        let given = humantime::format_duration(span);
        let problem = "it is not a number of whole seconds, at least one";
        return Err(Invalid::new("time between slots", given, problem, "give a duration such as 1h"));
    }
    let earlier = std::iter::successors(slot.earlier(span), |slot| slot.earlier(span));
    Ok(earlier.take(EarlierSlots::CHECKED_MAX).collect())
}

fn latest_first(slots: &[Slot], slot: Slot) -> Result<Vec<Slot>, Invalid> {
    if let Some(later) = slots.iter().find(|earlier| **earlier >= slot) {
        let problem = format!("it is not before {slot}, which is to run");
        return Err(Invalid::new("previous slot", later, problem, "give slots of the same schedule before that"));
    }
    let mut slots = slots.to_vec();
    slots.sort_unstable_by(|one, other| other.cmp(one));
    slots.dedup();
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn slot(text: &str) -> Slot {
        text.parse().unwrap()
    }

    fn before(earlier: &EarlierSlots, retain: Duration) -> Result<Vec<String>, Invalid> {
        let this = slot("2026-11-21T03:00");
        let slots = earlier.before("nightly", this, retain, this.time())?;
        Ok(slots.into_iter().map(|(_, mark)| mark.to_string()).collect())
    }

    #[test]
    fn earlier_slots_go_back_to_those_that_may_be_forgotten() {
        let names = |hours: &[&str]| Ok(hours.iter().map(|hour| format!("nightly@2026-11-{hour}:00:00Z")).collect());
        assert_eq!(before(&EarlierSlots::Every(HOUR), 2 * HOUR), names(&["21T02", "21T01"]));
        assert_eq!(before(&EarlierSlots::Every(Duration::from_secs(1)), 24 * HOUR).unwrap().len(), 100);
        let weekdays =
            EarlierSlots::Slots(["2026-11-19T03:00", "2026-11-20T03:00", "2026-11-20T03:00"].map(slot).to_vec());
        assert_eq!(before(&weekdays, 72 * HOUR), names(&["20T03", "19T03"]));
        assert_eq!(before(&weekdays, 24 * HOUR), names(&["20T03"]));
    }

    #[test]
    fn what_is_no_earlier_slot_is_refused() {
        for (earlier, words) in [
            (EarlierSlots::Every(Duration::ZERO), "whole seconds"),
            (EarlierSlots::Every(Duration::from_millis(1500)), "\"1s 500ms\""),
            (EarlierSlots::Slots(vec![slot("2026-11-21T03:00")]), "it is not before 2026-11-21T03:00:00Z"),
        ] {
            let error = before(&earlier, HOUR).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
