//! The resource behind the locks: it remembers the highest token, and refuses no write of a valid holder.

use std::collections::BTreeMap;

use lock_core::{FencingToken, Lease, LockName};

#[derive(Debug, Default)]
pub(crate) struct Fencing(BTreeMap<(LockName, u32), FencingToken>);

impl Fencing {
    /// Each slot of a semaphore stands for a resource of its own.
    pub(super) fn accepts(&mut self, lease: &Lease, slots: &[u32], token: FencingToken) -> bool {
        if slots.is_empty() {
            return self.accepts_one(&lease.name, 0, token);
        }
        let tokens = (0..).filter_map(|index| lease.tokens.nth(index));
        let refused = slots.iter().zip(tokens).filter(|(slot, token)| !self.accepts_one(&lease.name, **slot, *token));
        refused.count() == 0
    }

    fn accepts_one(&mut self, name: &LockName, slot: u32, token: FencingToken) -> bool {
        let highest = self.0.entry((name.clone(), slot)).or_insert(token);
        *highest = token.max(*highest);
        *highest == token
    }

    /// Whether it has accepted a write with a higher token.
    pub(super) fn is_past(&self, name: &LockName, token: FencingToken) -> bool {
        self.0.get(&(name.clone(), 0)).is_some_and(|highest| token < *highest)
    }
}
