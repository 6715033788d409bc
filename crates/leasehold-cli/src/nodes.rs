//! The locks of a quorum, as its nodes show them.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use leasehold::redlock::RedlockConfig;
use lock_core::inspect::{Entry, Held};
use lock_core::{Holder, LockName};

use crate::exit::{Exit, Failure};
use crate::locks::Locks;
use crate::store::Store;

/// The nodes of a quorum, each by itself. Nothing is written to them.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
}

/// One node, and its locks while it is connected.
struct Node {
    store: Store,
    locks: Option<Locks>,
}

impl Nodes {
    /// The nodes of a configuration, without a connection.
    pub(crate) fn of(config: &RedlockConfig) -> Self {
        let node = |url: &str| Node { store: Store::Url(url.to_owned()), locks: None };
        Self { nodes: config.nodes().iter().map(|url| node(url.url())).collect() }
    }

    /// The locks that a majority of the nodes shows.
    ///
    /// # Errors
    /// That of a node, if fewer than a majority answer.
    pub(crate) fn list(&mut self, pattern: &str) -> Result<Vec<Entry>, Failure> {
        let majority = self.nodes.len() / 2 + 1;
        let answers: Vec<_> = thread::scope(|scope| {
            let asked: Vec<_> = self.nodes.iter_mut().map(|node| scope.spawn(|| node.list(pattern))).collect();
            asked.into_iter().map(|node| node.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        let (shown, failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        match failed.into_iter().find_map(Result::err) {
            Some(failure) if shown.len() < majority => Err(failure),
            _ => Ok(merged(shown.into_iter().flatten().flatten(), majority)),
        }
    }
}

impl Node {
    /// Connects if needed.
    fn list(&mut self, pattern: &str) -> Result<Vec<Entry>, Failure> {
        let locks = match self.locks.take() {
            Some(locks) => locks,
            None => Locks::connect(&self.store)?,
        };
        let entries = locks.list(pattern)?;
        self.locks = Some(locks);
        Ok(entries)
    }
}

fn panicked() -> Failure {
    Failure::new(Exit::Internal, "a thread that reads a node has panicked; please report it")
}

/// What tells a lease from the others of its lock: its lowest token; `None` for one of something else.
type Key = Option<u64>;

/// The leases that a majority shows. A lease that fewer show is not granted yet, or not held any more.
fn merged(shown: impl Iterator<Item = Entry>, majority: usize) -> Vec<Entry> {
    let mut locks: BTreeMap<LockName, (u32, BTreeMap<Key, Vec<Held>>)> = BTreeMap::new();
    for entry in shown {
        let (waiters, leases) = locks.entry(entry.name).or_default();
        *waiters = entry.waiters.max(*waiters);
        entry.holders.into_iter().for_each(|held| leases.entry(key(&held)).or_default().push(held));
    }
    let lock = |(name, (waiters, leases)): (LockName, (u32, BTreeMap<Key, Vec<Held>>))| {
        let mut holders: Vec<_> = leases.into_values().filter_map(|shown| agreed(shown, majority)).collect();
        holders.sort_by_key(|held| std::cmp::Reverse(until(held)));
        let last = holders.first()?.clone();
        let leases = u32::try_from(holders.len()).unwrap_or(u32::MAX);
        Some(Entry {
            name,
            holder: last.holder,
            remaining: last.remaining,
            leases,
            holders,
            waiters,
            queue: Vec::new(),
        })
    };
    locks.into_iter().filter_map(lock).collect()
}

/// The lease, for as long as a majority holds it.
fn agreed(mut shown: Vec<Held>, majority: usize) -> Option<Held> {
    shown.sort_by_key(|held| std::cmp::Reverse(until(held)));
    (shown.len() >= majority).then(|| shown.swap_remove(majority - 1))
}

fn until(held: &Held) -> Duration {
    held.remaining.unwrap_or(Duration::MAX)
}

fn key(held: &Held) -> Key {
    match held.holder {
        Holder::Leasehold { tokens, .. } => Some(tokens.low().get()),
        Holder::Foreign => None,
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{FencingToken, Note, TokenRange};

    use super::*;

    fn entry(name: &str, token: u64, left: u64) -> Entry {
        let token = FencingToken::new(token).unwrap();
        let holder = Holder::Leasehold { tokens: TokenRange::new(token, token).unwrap(), note: Note::from_wire("1@h") };
        Entry::exclusive(name.parse().unwrap(), holder, Some(Duration::from_secs(left)), 0)
    }

    #[test]
    fn a_lease_is_held_while_a_majority_shows_it() {
        let shown = [entry("a", 7, 30), entry("a", 7, 20), entry("a", 7, 10), entry("b", 8, 30), entry("a", 6, 5)];
        let merged = merged(shown.into_iter(), 2);
        assert_eq!(merged, [entry("a", 7, 20)], "two of three hold it for 20 s; one shows b, and an older lease of a");
    }
}
