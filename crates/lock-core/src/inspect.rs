//! Inspecting locks from outside, and ending leases, for operators: what a store answers. [`watch`] compares two listings.

mod following;
mod serialized;
pub mod watch;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

pub use self::following::{Listing, Watch};
use crate::{Holder, LockName, Mode, Note, Slots};

/// A held lock, as its store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The lock.
    pub name: LockName,
    /// The holder: of several, the one whose lease ends last.
    pub holder: Holder,
    /// How long until that lease ends if nobody renews it; `None` if it never expires, or ends with the session of its holder.
    pub remaining: Option<Duration>,
    /// How many leases hold it.
    pub leases: u32,
    /// The leases that hold it, those that end last first; at most [`Entry::SHOWN_MAX`].
    pub holders: Vec<Held>,
    /// How many waiters are in the store's queue; 0 if it has no queue.
    pub waiters: u32,
    /// The waiters, in their order; at most [`Entry::SHOWN_MAX`].
    pub queue: Vec<Waiter>,
    /// Which nodes of a quorum have the lease; `None` for other stores.
    pub votes: Option<Votes>,
}

impl Entry {
    /// How many leases and waiters an entry lists at most. Chosen: more than a person reads.
    pub const SHOWN_MAX: usize = 100;

    /// A lock that is held by one exclusive lease of unknown age, and for which others wait that want the same and do not say who they are.
    pub fn exclusive(name: LockName, holder: Holder, remaining: Option<Duration>, waiters: u32) -> Self {
        let held = Held { holder: holder.clone(), mode: Mode::Exclusive, slots: Slots::NONE, age: None, remaining };
        let shown = usize::try_from(waiters).unwrap_or(usize::MAX).min(Self::SHOWN_MAX);
        let queue = vec![Waiter { note: None, mode: Mode::Exclusive, age: None }; shown];
        Self { name, holder, remaining, leases: 1, holders: vec![held], waiters, queue, votes: None }
    }

    /// Whether [`holders`](Self::holders) has every lease that holds the lock.
    pub fn lists_all_leases(&self) -> bool {
        usize::try_from(self.leases).is_ok_and(|leases| leases <= self.holders.len())
    }

    /// Whether [`queue`](Self::queue) has every waiter.
    pub fn lists_all_waiters(&self) -> bool {
        usize::try_from(self.waiters).is_ok_and(|waiters| waiters <= self.queue.len())
    }
}

/// The nodes of a quorum by their votes on a lease, each named by its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Votes {
    /// The nodes that have the lease: a majority, or as many as may be one together with those that abstain or did not answer.
    pub held: Vec<String>,
    /// The nodes that do not have it.
    pub not_held: Vec<String>,
    /// The nodes that do not have it and abstain: they may have forgotten it.
    pub abstaining: Vec<String>,
    /// The nodes that did not answer, or do not count.
    pub unreachable: Vec<String>,
}

impl fmt::Display for Votes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, not_held, abstaining, unreachable } = self;
        let others = [(not_held, "not held"), (abstaining, "may have forgotten it"), (unreachable, "unreachable")];
        let all = held.len() + others.iter().map(|(nodes, _)| nodes.len()).sum::<usize>();
        let doubt = if 2 * held.len() > all { "" } else { "possibly held, " };
        write!(f, "{doubt}{} of {all}: {}", held.len(), held.join(", "))?;
        let others = others.iter().flat_map(|(nodes, why)| nodes.iter().map(move |node| format!("{node}: {why}")));
        let others: Vec<_> = others.collect();
        if others.is_empty() { Ok(()) } else { write!(f, " ({})", others.join(", ")) }
    }
}

/// One lease that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The holder.
    pub holder: Holder,
    /// How the lock is shared.
    pub mode: Mode,
    /// The slots of its permits.
    pub slots: Slots,
    /// How long ago the lease was granted, to the second; `None` if the store does not say, as for a lease of an earlier version.
    ///
    /// Renewals do not count, nor does a ticket that is adopted; a change of the mode is a new grant. For display only: it is
    /// the difference of two clocks, and never negative.
    pub age: Option<Duration>,
    /// How long until the lease ends if nobody renews it; `None` if it never expires, or ends with the session of its holder.
    pub remaining: Option<Duration>,
}

/// One waiter in a store's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// What it says about itself; `None` of a program that is not leasehold.
    pub note: Option<Note>,
    /// What it asks for.
    pub mode: Mode,
    /// How long it has waited in the queue, to the second; `None` if the store does not say. For display only, like [`Held::age`].
    pub age: Option<Duration>,
}

/// The position in a listing. Opaque; only the backend that made it can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub String);

/// Which locks to list, and how many at a time.
///
/// ```
/// # use lock_core as leasehold;
/// use leasehold::inspect::Query;
///
/// let query = Query::matching("invoice:*").limit(100); // `after` continues where a page ended
/// assert_eq!((query.pattern.as_str(), query.limit), ("invoice:*", 100));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a query does nothing until a store lists its locks by it"]
#[non_exhaustive]
pub struct Query {
    /// A glob over names: `*` for any text, `?` for one character. Every other character matches itself.
    pub pattern: String,
    /// The cursor of the previous page; `None` to begin.
    pub cursor: Option<Cursor>,
    /// About how many entries to return at most; a store may return fewer, even none, before the end.
    pub limit: u32,
}

impl Query {
    /// The limit of a query that sets none. Chosen: a page that a store lists in milliseconds.
    pub const LIMIT_DEFAULT: u32 = 500;

    /// All held locks.
    pub fn all() -> Self {
        Self::matching("*")
    }

    /// The held locks whose names match a glob: `*` for any text, `?` for one character. Every other character matches
    /// itself.
    pub fn matching(pattern: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), cursor: None, limit: Self::LIMIT_DEFAULT }
    }

    /// Returns about this many entries at a time.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Continues where a page ended.
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.cursor = Some(cursor);
        self
    }
}

/// Some held locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries, in the store's order. A lock that changes hands during the listing may be missed or appear twice.
    pub entries: Vec<Entry>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// How long a store remembers at least who revoked a lease. Otherwise it does for as long as the lease could have lasted.
///
/// Chosen: longer than a holder takes to notice at the default ttl, and than an operator pauses between two looks.
pub const REMEMBERED_MIN: Duration = Duration::from_secs(60);

/// The answer to a revocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// The lease was ended.
    Revoked,
    /// The lease with this token does not hold the lock. Nothing was changed.
    NotHeld,
}

/// Whether `name` matches the glob `pattern` (`*` any text, `?` one character).
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // Whether the pattern so far matches the first `n` characters of the name, for each `n`.
    let mut matched = vec![false; name.len() + 1];
    matched[0] = true;
    for wanted in pattern.chars() {
        if wanted == '*' {
            (0..name.len()).for_each(|n| matched[n + 1] |= matched[n]);
        } else {
            (0..name.len()).rev().for_each(|n| matched[n + 1] = matched[n] && (wanted == '?' || wanted == name[n]));
            matched[0] = false;
        }
    }
    matched[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_name_the_nodes() {
        let nodes = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let none = Vec::new;
        let mut votes = Votes { held: nodes(&["a", "b"]), not_held: none(), abstaining: none(), unreachable: none() };
        assert_eq!(votes.to_string(), "2 of 2: a, b");
        (votes.not_held, votes.unreachable) = (nodes(&["c"]), nodes(&["d"]));
        assert_eq!(votes.to_string(), "possibly held, 2 of 4: a, b (c: not held, d: unreachable)");
        votes.abstaining = nodes(&["e"]);
        assert_eq!(
            votes.to_string(),
            "possibly held, 2 of 5: a, b (c: not held, e: may have forgotten it, d: unreachable)"
        );
    }

    #[test]
    fn globs_match_whole_names() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "a"),
            ("a*c", "abbc"),
            ("a*c", "ac"),
            ("?b?", "abc"),
            ("a*b*c", "aXbYbZc"),
            ("inv[1]*", "inv[1]2"),
        ] {
            assert!(glob_matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("a", ""), ("a*c", "abcd"), ("?", "ab"), ("*x", "y"), ("a?", "a")] {
            assert!(!glob_matches(pattern, name), "{pattern} {name}");
        }
    }
}
