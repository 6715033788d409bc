//! The resource behind the locks: it remembers the highest token, and refuses no write of a valid holder.

use std::collections::BTreeMap;

use lock_core::{FencingToken, LockName};

#[derive(Debug, Default)]
pub(crate) struct Fencing(BTreeMap<LockName, FencingToken>);

impl Fencing {
    pub(super) fn accepts(&mut self, name: &LockName, token: FencingToken) -> bool {
        let highest = self.0.entry(name.clone()).or_insert(token);
        *highest = token.max(*highest);
        *highest == token
    }

    /// Whether it has accepted a write with a higher token.
    pub(super) fn is_past(&self, name: &LockName, token: FencingToken) -> bool {
        self.0.get(name).is_some_and(|highest| token < *highest)
    }
}
