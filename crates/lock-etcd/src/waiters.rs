//! Who waits for the end of which keys.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_core::{LockName, Owner};

/// How many of the latest ends are remembered. Chosen: far more than there are between a list and the answer to it.
const REMEMBERED_MAX: usize = 1024;

/// A waiter: the owner of a claim for this lock.
pub(crate) type Waiter = (LockName, Owner);

/// The waiters of a client.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    by_key: HashMap<Vec<u8>, Vec<Waiter>>,
    keys: HashMap<Waiter, Vec<Vec<u8>>>,
    /// The latest ends, in their order.
    ended: VecDeque<(i64, Vec<u8>)>,
    /// Up to this revision, ends were forgotten.
    forgotten: i64,
}

impl Waiters {
    /// Has the end of these keys wake a waiter, and no longer that of others. Returns whether one of them has ended since this revision.
    pub(crate) fn wait(&self, waiter: &Waiter, keys: Vec<Vec<u8>>, since: i64) -> bool {
        let mut inner = self.lock();
        inner.forget(waiter);
        let has_ended =
            inner.forgotten > since || inner.ended.iter().any(|(at, key)| *at > since && keys.contains(key));
        for key in &keys {
            inner.by_key.entry(key.clone()).or_default().push(waiter.clone());
        }
        inner.keys.insert(waiter.clone(), keys);
        has_ended
    }

    /// Wakes this waiter no more. Returns whether it waited.
    pub(crate) fn leave(&self, waiter: &Waiter) -> bool {
        self.lock().forget(waiter)
    }

    /// A key has ended. Returns the waiters that this wakes.
    pub(crate) fn ended(&self, key: &[u8], at: i64) -> Vec<Waiter> {
        let mut inner = self.lock();
        if inner.ended.len() == REMEMBERED_MAX
            && let Some((forgotten, _)) = inner.ended.pop_front()
        {
            inner.forgotten = forgotten;
        }
        inner.ended.push_back((at, key.to_vec()));
        inner.by_key.get(key).cloned().unwrap_or_default()
    }

    /// Forgets what has ended: some ends were missed, and the servers may count revisions anew.
    pub(crate) fn forget_ends(&self) {
        let mut inner = self.lock();
        inner.ended.clear();
        inner.forgotten = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget(&mut self, waiter: &Waiter) -> bool {
        let Some(keys) = self.keys.remove(waiter) else { return false };
        for key in keys {
            if let Some(waiters) = self.by_key.get_mut(&key) {
                waiters.retain(|other| other != waiter);
                if waiters.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(name: &str) -> Waiter {
        (name.parse().unwrap(), Owner::from_random([7; 16]))
    }

    #[test]
    fn an_end_after_the_list_counts_although_it_was_told_before_the_wait_began() {
        let (waiters, one) = (Waiters::default(), waiter("one"));
        assert_eq!(waiters.ended(b"a", 5), []);
        assert!(waiters.wait(&one, vec![b"a".to_vec()], 4));
        assert!(!waiters.wait(&one, vec![b"a".to_vec()], 5));
        assert_eq!(waiters.ended(b"a", 6), std::slice::from_ref(&one));
        assert!(waiters.leave(&one) && !waiters.leave(&one));
        assert_eq!(waiters.ended(b"a", 7), []);
    }

    #[test]
    fn what_was_forgotten_counts_as_ended() {
        let (waiters, one) = (Waiters::default(), waiter("one"));
        (0..2000).for_each(|at| _ = waiters.ended(b"b", at));
        assert!(waiters.wait(&one, vec![b"a".to_vec()], 900));
        assert!(!waiters.wait(&one, vec![b"a".to_vec()], 1990));
    }
}
