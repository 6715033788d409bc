//! Changes between two listings of the locks of a store.
//!
//! ```
//! # use lock_core as leasehold;
//! # use leasehold::inspect::{Entry, watch};
//! # use leasehold::{FencingToken, Holder, Note, TokenRange};
//! # use std::time::Duration;
//! # fn entry(name: &str, token: u64, waiters: u32) -> Entry {
//! #     let tokens = TokenRange::new(FencingToken::new(token).unwrap(), FencingToken::new(token).unwrap()).unwrap();
//! #     let holder = Holder::Leasehold { tokens, note: Note::new("web-3", 4711, "").unwrap() };
//! #     Entry::exclusive(name.parse().unwrap(), holder, Some(Duration::from_secs(20)), waiters)
//! # }
//! use leasehold::inspect::watch::{Happened, changes};
//!
//! let before = [entry("job:7", 1, 1)]; // from `list`: each listing from its first page to its last
//! let after = [entry("job:7", 2, 0)];
//! let between = Duration::from_secs(2); // from the first request of the first listing to the last answer of the second
//! for change in changes(&before, &after, between) {
//!     match change.happened {
//!         Happened::Acquired(held) => println!("{}: acquired by {}", change.name, held.holder),
//!         Happened::Queued { more, .. } => println!("{}: {more} more in the queue", change.name),
//!         Happened::Released(held) => println!("{}: released by {}", change.name, held.holder),
//!         Happened::Expired(held) => println!("{}: lost by {}", change.name, held.holder),
//!         Happened::Revoked(..) | Happened::Ended(_) => {} // only a `Watch` tells these
//!     }
//! }
//! # assert_eq!(changes(&before, &after, between).len(), 2);
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Entry, Held};
use crate::{FencingToken, LockName, Mode, Note, TokenRange};

/// Something that has happened to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The lock.
    pub name: LockName,
    /// What has happened.
    pub happened: Happened,
    /// How many waiters are in the queue after it.
    pub waiters: u32,
}

/// A change of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// This lease was granted.
    Acquired(Held),
    /// The queue has grown.
    Queued {
        /// By how many waiters.
        more: u32,
        /// What the last of them asks for; `None` if the store does not show it.
        wanted: Option<Mode>,
    },
    /// This lease, shown as in the first listing, ended before its time: its holder released it, or an operator revoked it.
    /// [`revoked_by`](crate::AsyncBackend::revoked_by) tells which.
    Released(Held),
    /// This lease, shown as in the first listing, may have ended because nobody renewed it. It may also have been released
    /// or revoked in the time that it had left.
    Expired(Held),
    /// An operator, who left this note, ended this lease. Only [`Change::settle`] tells so.
    Revoked(Held, Note),
    /// This lease ended while the store did not answer: nobody can tell how. Only [`Watch`](super::Watch) and [`Change::settle`] tell so.
    Ended(Held),
}

impl Happened {
    /// The kind of the change in one word, as in JSON: `acquired`, `queued`, `released`, `lost`, `broken` or `ended`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Acquired(_) => "acquired",
            Self::Queued { .. } => "queued",
            Self::Released(_) => "released",
            Self::Expired(_) => "lost",
            Self::Revoked(..) => "broken",
            Self::Ended(_) => "ended",
        }
    }

    /// The lease that was granted, or that has ended; `None` if the queue has grown.
    pub fn lease(&self) -> Option<&Held> {
        match self {
            Self::Queued { .. } => None,
            Self::Acquired(held)
            | Self::Released(held)
            | Self::Expired(held)
            | Self::Revoked(held, _)
            | Self::Ended(held) => Some(held),
        }
    }
}

impl Change {
    /// The highest token of the lease, if this is the end of one. The store may remember by it who revoked the lease.
    pub fn ended(&self) -> Option<FencingToken> {
        let (Happened::Released(held) | Happened::Expired(held) | Happened::Ended(held)) = &self.happened else {
            return None;
        };
        held.holder.tokens().map(TokenRange::high)
    }

    /// Changes how a lease ended, by what the store remembers: who revoked it, if somebody did, or an error if it does not answer.
    pub fn settle<E>(&mut self, revoked_by: Result<Option<Note>, E>) {
        let (Happened::Released(held) | Happened::Expired(held) | Happened::Ended(held)) = &self.happened else {
            return;
        };
        self.happened = match revoked_by {
            Ok(Some(by)) => Happened::Revoked(held.clone(), by),
            Ok(None) => return,
            Err(_) => Happened::Ended(held.clone()),
        };
    }
}

/// What has happened between two listings of the same query, by name: first the leases that ended, and then what is new.
///
/// `between` is the time from the first request of the first listing to the last answer of the second. What happened and was
/// over again between the two is not seen. Of a lock with more leases than an [`Entry`] lists, only the queue is compared.
/// Everything counts as new if the first listing is empty.
pub fn changes(before: &[Entry], after: &[Entry], between: Duration) -> Vec<Change> {
    let (before, after) = (by_name(before), by_name(after));
    let ended = before.iter().flat_map(|(name, entry)| ended(entry, after.get(name).copied(), between));
    let new = after.iter().flat_map(|(name, entry)| new(before.get(name).copied(), entry));
    ended.chain(new).collect()
}

/// Of a lock that is listed twice, the first entry counts.
fn by_name(entries: &[Entry]) -> BTreeMap<&LockName, &Entry> {
    entries.iter().rev().map(|entry| (&entry.name, entry)).collect()
}

fn ended(before: &Entry, after: Option<&Entry>, between: Duration) -> Vec<Change> {
    let waiters = after.map_or(0, |entry| entry.waiters);
    let ended = |held: &Held| {
        let is_early = held.remaining.is_none_or(|left| left > between);
        let happened = if is_early { Happened::Released } else { Happened::Expired };
        Change { name: before.name.clone(), happened: happened(held.clone()), waiters }
    };
    only_in(before, after).into_iter().map(ended).collect()
}

fn new(before: Option<&Entry>, after: &Entry) -> Vec<Change> {
    let acquired = match before {
        None => after.holders.iter().collect(),
        Some(_) => only_in(after, before),
    };
    let more = after.waiters.saturating_sub(before.map_or(0, |entry| entry.waiters));
    let queued = (more > 0).then(|| Happened::Queued { more, wanted: after.queue.last().map(|last| last.mode) });
    let happened = acquired.into_iter().map(|held| Happened::Acquired(held.clone())).chain(queued);
    happened.map(|happened| Change { name: after.name.clone(), happened, waiters: after.waiters }).collect()
}

/// The leases of one entry that the other does not list; none if one of the two does not list all of its leases.
fn only_in<'a>(one: &'a Entry, other: Option<&Entry>) -> Vec<&'a Held> {
    if !one.lists_all_leases() || !other.is_none_or(Entry::lists_all_leases) {
        return Vec::new();
    }
    let is_listed = |held: &&Held| other.is_some_and(|other| other.holders.iter().any(|known| is_same(held, known)));
    one.holders.iter().filter(|held| !is_listed(held)).collect()
}

fn is_same(one: &Held, other: &Held) -> bool {
    one.holder.tokens().map(TokenRange::low) == other.holder.tokens().map(TokenRange::low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Holder;

    fn entry(name: &str, token: u64, left: u64, waiters: u32) -> Entry {
        let token = FencingToken::new(token).unwrap();
        let tokens = TokenRange::new(token, token).unwrap();
        let holder = Holder::Leasehold { tokens, note: Note::from_wire("1@h") };
        Entry::exclusive(name.parse().unwrap(), holder, Some(Duration::from_secs(left)), waiters)
    }

    fn told(before: &[Entry], after: &[Entry], between: u64) -> Vec<String> {
        let told = |Change { name, happened, waiters }| match &happened {
            Happened::Acquired(held) => format!("{name} acquired {:?}", held.mode),
            Happened::Queued { more, .. } => format!("{name} queued {more} of {waiters}"),
            Happened::Released(_) | Happened::Expired(_) => format!("{name} {}", happened.word()),
            Happened::Revoked(..) | Happened::Ended(_) => unreachable!("two listings do not tell this"),
        };
        changes(before, after, Duration::from_secs(between)).into_iter().map(told).collect()
    }

    #[test]
    fn a_lease_that_ends_before_its_time_was_released_and_another_one_has_expired() {
        let before = [entry("c", 3, 9, 0), entry("b", 2, 1, 0), entry("a", 1, 20, 1)];
        let after = [entry("c", 3, 30, 2), entry("a", 4, 30, 0)];
        assert_eq!(told(&before, &after, 2), ["a released", "b lost", "a acquired Exclusive", "c queued 2 of 2"]);
        assert_eq!(told(&after, &after, 2), Vec::<String>::new());
        assert_eq!(told(&before[2..], &[], 19), ["a released"]);
        assert_eq!(told(&before[2..], &[], 20), ["a lost"]);
    }

    #[test]
    fn everything_is_new_after_an_empty_listing() {
        assert_eq!(told(&[], &[entry("a", 1, 20, 1)], 0), ["a acquired Exclusive", "a queued 1 of 1"]);
    }

    #[test]
    fn of_a_lock_with_more_leases_than_are_listed_only_the_queue_is_compared() {
        let many = [Entry { leases: 101, ..entry("a", 1, 20, 0) }];
        let few = [entry("a", 2, 20, 3)];
        assert_eq!(told(&many, &few, 1), ["a queued 3 of 3"]);
        assert_eq!(told(&few, &many, 1), Vec::<String>::new());
    }

    #[test]
    fn of_a_lock_that_is_listed_twice_the_first_entry_counts() {
        let before = [entry("a", 1, 20, 0)];
        assert_eq!(told(&before, &[entry("a", 1, 20, 0), entry("a", 2, 20, 0)], 1), Vec::<String>::new());
    }
}
