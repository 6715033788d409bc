//! What has happened between two looks.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use leasehold::kit::Mark;
use lock_core::inspect::{Entry, Held};
use lock_core::{FencingToken, Holder, LockName, Mode, Moment, Note};

use crate::looks::Look;

/// What was seen at one look. The only thing that is kept of earlier ones.
#[derive(Debug)]
pub(super) struct State {
    asked: Moment,
    pub(super) at: Moment,
    pub(super) locks: BTreeMap<LockName, Entry>,
}

/// Something that has happened.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// When it was seen.
    pub(crate) time: SystemTime,
    pub(super) name: LockName,
    pub(super) event: Event,
    /// How many wait now.
    pub(super) waiters: u32,
    /// Whether it was so when the watch began.
    pub(super) already: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Acquired(Held),
    /// So many more wait than before; and what the last of them asks for, if the store shows it.
    Queued(u32, Option<Mode>),
    Over(Held, Way),
}

/// How a lease ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Before its time.
    Released,
    /// When its time was over.
    Lost,
    /// By an operator.
    Broken(Note),
    /// While the store was away.
    Ended,
}

/// A lease that is not there any more.
pub(super) struct Vanished<'a> {
    pub(super) name: &'a LockName,
    held: &'a Held,
    /// Whether it was kept for a time that was set.
    is_mark: bool,
    /// At most so much later than the last look that showed it.
    since: Duration,
}

impl Vanished<'_> {
    /// The token that tells it from others.
    pub(super) fn token(&self) -> Option<FencingToken> {
        match self.held.holder {
            Holder::Leasehold { tokens, .. } => Some(tokens.high()),
            Holder::Foreign => None,
        }
    }

    /// Whether it would have lasted longer, or has done what it was for.
    pub(super) fn ended_early(&self) -> bool {
        self.is_mark || self.held.remaining.is_none_or(|left| left > self.since)
    }
}

impl State {
    pub(super) fn of(look: Look) -> Self {
        let locks = look.entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        Self { asked: look.asked, at: look.at, locks }
    }

    /// How long until a lease ends that nobody renews.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.locks.values().flat_map(|entry| &entry.holders).filter_map(|held| held.remaining).min()
    }

    /// What there was when the watch began.
    pub(super) fn already(&self) -> Vec<Change> {
        let before = Self { asked: self.asked, at: self.at, locks: BTreeMap::new() };
        let mut changes = before.compare(self, |_| Way::Ended);
        changes.iter_mut().for_each(|change| change.already = true);
        changes
    }

    /// What has happened until the next look: what ended first.
    pub(super) fn compare(&self, next: &Self, mut way: impl FnMut(&Vanished<'_>) -> Way) -> Vec<Change> {
        // What remained may have been read when the store was asked, and that it is over when it had answered.
        let since = next.at.since(self.asked);
        let mut changes = Vec::new();
        for (name, entry) in &self.locks {
            let after = next.locks.get(name);
            for held in gone(entry, after) {
                let vanished = Vanished { name, held, is_mark: Mark::shown(entry).is_some(), since };
                let event = Event::Over(held.clone(), way(&vanished));
                changes.push(change(name, event, after.map_or(0, |entry| entry.waiters)));
            }
        }
        for (name, entry) in &next.locks {
            let before = self.locks.get(name);
            let new = before.map_or_else(|| entry.holders.iter().collect(), |before| gone(entry, Some(before)));
            let acquired = new.into_iter().map(|held| Event::Acquired(held.clone()));
            let more = entry.waiters.saturating_sub(before.map_or(0, |before| before.waiters));
            let queued = (more > 0).then(|| Event::Queued(more, entry.queue.last().copied()));
            changes.extend(acquired.chain(queued).map(|event| change(name, event, entry.waiters)));
        }
        changes
    }
}

fn change(name: &LockName, event: Event, waiters: u32) -> Change {
    Change { time: SystemTime::now(), name: name.clone(), event, waiters, already: false }
}

/// The leases of `these` that are not among `those`. None of a lock of which the store does not show all leases.
fn gone<'a>(these: &'a Entry, those: Option<&Entry>) -> Vec<&'a Held> {
    let all_shown = |entry: &Entry| usize::try_from(entry.leases).is_ok_and(|leases| leases <= entry.holders.len());
    if !all_shown(these) || !those.is_none_or(all_shown) {
        return Vec::new();
    }
    let there = |held: &&Held| those.is_some_and(|those| those.holders.iter().any(|other| is_same(held, other)));
    these.holders.iter().filter(|held| !there(held)).collect()
}

fn is_same(one: &Held, other: &Held) -> bool {
    match (&one.holder, &other.holder) {
        (Holder::Leasehold { tokens: one, .. }, Holder::Leasehold { tokens: other, .. }) => one.low() == other.low(),
        (Holder::Foreign, Holder::Foreign) => true,
        (Holder::Leasehold { .. }, Holder::Foreign) | (Holder::Foreign, Holder::Leasehold { .. }) => false,
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Note, TokenRange};

    use super::*;

    fn entry(name: &str, token: u64, left: u64, waiters: u32) -> Entry {
        let token = FencingToken::new(token).unwrap();
        let tokens = TokenRange::new(token, token).unwrap();
        let holder = Holder::Leasehold { tokens, note: Note::from_wire("1@h") };
        Entry::exclusive(name.parse().unwrap(), holder, Some(Duration::from_secs(left)), waiters)
    }

    fn state(second: u64, entries: Vec<Entry>) -> State {
        let at = Moment::ORIGIN + Duration::from_secs(second);
        State::of(Look { asked: at, at, entries })
    }

    fn told(before: &State, after: &State) -> Vec<String> {
        let way = |vanished: &Vanished<'_>| if vanished.ended_early() { Way::Released } else { Way::Lost };
        let told = |change: Change| match change.event {
            Event::Acquired(held) => format!("{} acquired {:?}", change.name, held.mode),
            Event::Queued(more, _) => format!("{} queued {more} of {}", change.name, change.waiters),
            Event::Over(_, way) => format!("{} {way:?}", change.name),
        };
        before.compare(after, way).into_iter().map(told).collect()
    }

    #[test]
    fn what_ends_before_its_time_was_released_and_what_ends_by_time_was_lost() {
        let before = state(10, vec![entry("a", 1, 20, 1), entry("b", 2, 1, 0), entry("c", 3, 9, 0)]);
        let after = state(12, vec![entry("a", 4, 30, 0), entry("c", 3, 30, 2)]);
        assert_eq!(told(&before, &after), ["a Released", "b Lost", "a acquired Exclusive", "c queued 2 of 2"]);
        assert_eq!(told(&after, &after), Vec::<String>::new());
        assert_eq!(before.next_end(), Some(Duration::from_secs(1)));
        let already = before.already();
        assert!(already.len() == 4 && already.iter().all(|change| change.already));
    }

    #[test]
    fn a_lease_that_ended_by_time_was_lost_also_if_the_store_answered_late() {
        let before = State { asked: Moment::ORIGIN + Duration::from_secs(6), ..state(10, vec![entry("a", 1, 5, 0)]) };
        assert_eq!(told(&before, &state(12, Vec::new())), ["a Lost"]);
    }

    #[test]
    fn a_lock_with_more_leases_than_the_store_shows_says_nothing_of_them() {
        let many = || Entry { leases: 101, ..entry("a", 1, 20, 0) };
        let few = entry("a", 2, 20, 3);
        assert_eq!(told(&state(0, vec![many()]), &state(1, vec![few.clone()])), ["a queued 3 of 3"]);
        assert_eq!(told(&state(0, vec![few]), &state(1, vec![many()])), Vec::<String>::new());
    }
}
