//! Following the locks of a store from listing to listing.

use std::time::Duration;

use super::Entry;
use super::watch::{Change, Happened, changes};
use crate::{LockName, Moment};

/// The shortest pause before a lease is about to end. Chosen: so that it is seen whether it was renewed.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// How many times as long as a listing the pause after it is at least, unless the pause is to be shorter. Chosen: so that the store is
/// busy with listings for a tenth of the time.
const PAUSE_PER_LISTING: u32 = 9;

/// A whole listing: the entries of all its pages.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Before the first request.
    asked: Moment,
    /// After the last answer.
    at: Moment,
    /// By name; each lock once.
    entries: Vec<Entry>,
}

impl Listing {
    /// The entries of all pages, with the moments before the first request and after the last answer.
    pub fn new(asked: Moment, at: Moment, mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        Self { asked, at, entries }
    }

    /// The locks by name, each once.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn entry(&self, name: &LockName) -> Option<&Entry> {
        self.entries.binary_search_by(|entry| entry.name.cmp(name)).ok().map(|at| &self.entries[at])
    }

    /// When the store had answered.
    pub fn at(&self) -> Moment {
        self.at
    }
}

/// The listings of one query, each compared with the one before. Asks nobody: it is given what the store answers.
#[derive(Clone, Debug)]
pub struct Watch {
    last: Listing,
    /// Whether the store answers.
    answers: bool,
}

impl Watch {
    /// Begins with this listing.
    pub fn new(first: Listing) -> Self {
        Self { last: first, answers: true }
    }

    /// The last listing.
    pub fn last(&self) -> &Listing {
        &self.last
    }

    /// The store did not answer.
    pub fn miss(&mut self) {
        self.answers = false;
    }

    /// What has happened since the last listing. `is_kept` tells of a lock whether it is kept for a set time, so that its end is no loss.
    ///
    /// Of each lease that [ended](Change::ended), ask the store who revoked it, and [settle](Change::settle) the change.
    pub fn next(&mut self, next: Listing, is_kept: impl Fn(&Entry) -> bool) -> Vec<Change> {
        // The remaining time may have been read when the request was sent, and the end when the answer came.
        let between = next.at.since(self.last.asked);
        let mut changes = changes(&self.last.entries, &next.entries, between);
        for change in &mut changes {
            let (Happened::Released(held) | Happened::Expired(held)) = &change.happened else { continue };
            if !self.answers {
                change.happened = Happened::Ended(held.clone());
            } else if self.last.entry(&change.name).is_some_and(&is_kept) {
                change.happened = Happened::Released(held.clone());
            }
        }
        (self.last, self.answers) = (next, true);
        changes
    }

    /// How long to pause before the next listing: `every`, or less if a lease is about to end that nobody renews, but not so short that
    /// listings keep the store busy.
    pub fn pause(&self, every: Duration) -> Duration {
        if !self.answers {
            return every;
        }
        let holders = self.last.entries.iter().flat_map(|entry| &entry.holders);
        let next_end = holders.filter_map(|held| held.remaining).min();
        until_next(every, next_end, self.last.at.since(self.last.asked))
    }
}

fn until_next(every: Duration, next_end: Option<Duration>, took: Duration) -> Duration {
    let least = took.saturating_mul(PAUSE_PER_LISTING).max(PAUSE_MIN);
    next_end.map_or(every, |end| (end / 2).max(least).min(every))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FencingToken, Holder, Note, TokenRange};

    #[test]
    fn a_lease_that_is_about_to_end_shortens_the_pause_but_listings_that_take_long_do_not_follow_each_other() {
        let pause = |end: Option<u64>, took| {
            until_next(Duration::from_secs(10), end.map(Duration::from_millis), Duration::from_millis(took)).as_millis()
        };
        assert_eq!(pause(None, 0), 10_000);
        assert_eq!((pause(Some(2000), 1), pause(Some(0), 1), pause(Some(60_000), 1)), (1000, 50, 10_000));
        assert_eq!((pause(Some(0), 600), pause(Some(0), 60_000)), (5400, 10_000));
    }

    fn listing(second: u64, left: Option<u64>) -> Listing {
        let token = FencingToken::new(7).unwrap();
        let holder = Holder::Leasehold { tokens: TokenRange::new(token, token).unwrap(), note: Note::from_wire("1@h") };
        let entry = |left| Entry::exclusive("a".parse().unwrap(), holder, Some(Duration::from_secs(left)), 0);
        let moment = Moment::ORIGIN + Duration::from_secs(second);
        Listing::new(moment, moment, left.map(entry).into_iter().collect())
    }

    #[test]
    fn the_end_of_a_lease_is_told_by_its_time_unless_the_store_was_away_or_the_lock_was_kept() {
        let end = |missed: bool, kept: bool, left| {
            let mut watch = Watch::new(listing(0, Some(left)));
            if missed {
                watch.miss();
            }
            let mut changes = watch.next(listing(10, None), |_| kept);
            assert_eq!(changes[0].ended(), FencingToken::new(7).ok());
            changes.remove(0)
        };
        assert!(matches!(end(false, false, 20).happened, Happened::Released(_)));
        assert!(matches!(end(false, false, 5).happened, Happened::Expired(_)));
        assert!(matches!(end(false, true, 5).happened, Happened::Released(_)));
        assert!(matches!(end(true, true, 20).happened, Happened::Ended(_)));
        let settled = |answer| {
            let mut change = end(false, false, 5);
            change.settle(answer);
            change.happened
        };
        assert!(matches!(settled(Ok(None)), Happened::Expired(_)));
        assert!(matches!(settled(Ok(Some(Note::from_wire("2@h")))), Happened::Revoked(..)));
        assert!(matches!(settled(Err("away")), Happened::Ended(_)));
    }

    #[test]
    fn a_listing_has_each_lock_once() {
        let [one, other] = [listing(0, Some(5)), listing(0, Some(6))];
        let both = [other.entries, one.entries.clone()].concat();
        assert_eq!(Listing::new(one.asked, one.at, both).entries().len(), 1);
    }
}
