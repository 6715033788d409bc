//! What the workers observed, and the totals.

use lock_core::Moment;
use serde::{Deserialize, Serialize};

/// A visit inside the lock, in nanoseconds of this machine's clock, which all its processes share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Visit {
    from: u64,
    to: u64,
}

impl Visit {
    /// A visit between two moments.
    pub(crate) fn between(from: Moment, to: Moment) -> Self {
        Self { from: from.as_nanos(), to: to.as_nanos() }
    }
}

/// What one worker did, or several together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Diary {
    /// When it was inside.
    pub(crate) visits: Vec<Visit>,
    /// How many deposits it made, as far as it knows.
    pub(crate) made: u64,
    /// How many of its writes the account refused.
    pub(crate) refused: u64,
    /// How many times it noticed in time that its lease was lost, and did not write.
    pub(crate) noticed: u64,
    /// How many times it deleted another worker's lock.
    pub(crate) freed_others: u64,
    /// Whether it gave up waiting: 1 if so.
    pub(crate) stuck: u64,
}

impl Diary {
    /// Adds another worker's.
    pub(crate) fn add(mut self, other: Self) -> Self {
        self.visits.extend(other.visits);
        self.made += other.made;
        self.refused += other.refused;
        self.noticed += other.noticed;
        self.freed_others += other.freed_others;
        self.stuck += other.stuck;
        self
    }

    /// How many visits began while another worker was inside.
    pub(crate) fn overlaps(&self) -> u64 {
        let mut visits = self.visits.clone();
        visits.sort_by_key(|visit| visit.from);
        let mut inside_until = 0;
        let mut overlaps = 0;
        for Visit { from, to } in visits {
            overlaps += u64::from(from < inside_until);
            inside_until = inside_until.max(to);
        }
        overlaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diary(visits: &[(u64, u64)]) -> Diary {
        let visits = visits.iter().map(|&(from, to)| Visit { from, to }).collect();
        Diary { visits, made: 1, ..Diary::default() }
    }

    #[test]
    fn visits_overlap_when_one_begins_before_another_ends() {
        for (visits, overlaps) in [
            (&[][..], 0),
            (&[(1, 5)][..], 0),
            (&[(1, 5), (5, 9)][..], 0),
            (&[(4, 9), (1, 5)][..], 1),
            (&[(1, 9), (2, 3), (4, 5), (9, 10)][..], 2),
            (&[(1, 2), (1, 2), (1, 2)][..], 2),
        ] {
            assert_eq!(diary(visits).overlaps(), overlaps, "{visits:?}");
        }
    }

    #[test]
    fn diaries_add_up() {
        let both = diary(&[(1, 5)]).add(diary(&[(2, 3)]));
        assert_eq!((both.made, both.overlaps()), (2, 1));
    }
}
