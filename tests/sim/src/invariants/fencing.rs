//! The resource behind the locks: it remembers the highest token, and refuses no write of a valid holder.

use std::collections::BTreeMap;

use lock_core::{FencingToken, Hold, LockName};

#[derive(Debug, Default)]
pub(crate) struct Fencing(BTreeMap<(LockName, Option<u32>), FencingToken>);

impl Fencing {
    /// A write under this hold, to what each of these slots stands for, or to the one resource if it has none.
    pub(super) fn accepts_all(&mut self, hold: &Hold, slots: &[u32]) -> bool {
        let lease = hold.lease();
        if slots.is_empty() {
            return self.accepts(&lease.name, None, hold.token());
        }
        let tokens = (0..).map_while(|nth| lease.tokens.nth(nth));
        slots.iter().zip(tokens).all(|(slot, token)| self.accepts(&lease.name, Some(*slot), token))
    }

    fn accepts(&mut self, name: &LockName, slot: Option<u32>, token: FencingToken) -> bool {
        let highest = self.0.entry((name.clone(), slot)).or_insert(token);
        *highest = token.max(*highest);
        *highest == token
    }

    /// Whether it has accepted a write with a higher token.
    pub(super) fn is_past(&self, name: &LockName, token: FencingToken) -> bool {
        self.0.get(&(name.clone(), None)).is_some_and(|highest| token < *highest)
    }
}
