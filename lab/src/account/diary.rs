//! What the workers observed, and the totals.

use leasehold::clock::Moment;
use serde::{Deserialize, Serialize};

/// A visit inside the lock of an account, in nanoseconds of this machine's clock, which all its processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Visit {
    account: u32,
    from: u64,
    to: u64,
}

impl Visit {
    /// A visit between two moments.
    pub(crate) fn between(account: u32, from: Moment, to: Moment) -> Self {
        Self { account, from: from.as_nanos(), to: to.as_nanos() }
    }
}

/// What one worker did, or several together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Diary {
    /// When it was inside.
    pub(crate) visits: Vec<Visit>,
    /// How many deposits it made, as far as it knows.
    pub(crate) made: u64,
    /// How many times it found the lock taken.
    pub(crate) waits: u64,
    /// How many of its writes the account refused.
    pub(crate) refused: u64,
    /// How many times it noticed in time that its lease was lost, and did not write.
    pub(crate) noticed: u64,
    /// How many times it deleted another worker's lock.
    pub(crate) wrong_deletes: u64,
    /// How many times it renewed another worker's lock.
    pub(crate) wrong_renewals: u64,
    /// How many times it entered before a worker that had waited longer.
    pub(crate) passes: u64,
    /// Whether it gave up waiting: 1 if so.
    pub(crate) stuck: u64,
}

impl Diary {
    /// Several together.
    pub(crate) fn sum(diaries: impl IntoIterator<Item = Self>) -> Self {
        diaries.into_iter().fold(Self::default(), Self::add)
    }

    /// Adds another worker's.
    pub(crate) fn add(mut self, other: Self) -> Self {
        self.visits.extend(other.visits);
        self.made += other.made;
        self.waits += other.waits;
        self.refused += other.refused;
        self.noticed += other.noticed;
        self.wrong_deletes += other.wrong_deletes;
        self.wrong_renewals += other.wrong_renewals;
        self.passes += other.passes;
        self.stuck += other.stuck;
        self
    }

    /// How many visits began while another worker was inside the lock of the same account.
    pub(crate) fn overlaps(&self) -> u64 {
        let mut visits = self.visits.clone();
        visits.sort_unstable();
        let overlaps = |visits: &[Visit]| {
            let mut inside_until = 0;
            let mut overlaps = 0;
            for Visit { from, to, .. } in visits {
                overlaps += u64::from(*from < inside_until);
                inside_until = inside_until.max(*to);
            }
            overlaps
        };
        visits.chunk_by(|one, next| one.account == next.account).map(overlaps).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diary(account: u32, visits: &[(u64, u64)]) -> Diary {
        let visits = visits.iter().map(|&(from, to)| Visit { account, from, to }).collect();
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
            assert_eq!(diary(0, visits).overlaps(), overlaps, "{visits:?}");
        }
    }

    #[test]
    fn diaries_add_up() {
        let both = Diary::sum([diary(0, &[(1, 5)]), diary(0, &[(2, 3)])]);
        assert_eq!((both.made, both.overlaps()), (2, 1));
    }

    #[test]
    fn visits_to_several_accounts_do_not_overlap() {
        assert_eq!(diary(0, &[(1, 5)]).add(diary(1, &[(2, 3)])).overlaps(), 0);
    }
}
