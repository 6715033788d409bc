//! Who revoked which lease.

use std::collections::BTreeMap;

use lock_core::{FencingToken, LockName, Moment, Note};

/// The revocations that are remembered, by the highest token of the lease. No token is drawn twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revocations(BTreeMap<FencingToken, Revocation>);

#[derive(Clone, Debug)]
struct Revocation {
    name: LockName,
    by: Note,
    until: Moment,
}

impl Revocations {
    /// Remembers who ended a lease, and forgets what has expired.
    pub(crate) fn remember(&mut self, now: Moment, name: &LockName, highest: FencingToken, by: Note, until: Moment) {
        self.0.retain(|_, revocation| now < revocation.until);
        self.0.insert(highest, Revocation { name: name.clone(), by, until });
    }

    /// Who revoked the lease with this highest token.
    pub(crate) fn by(&self, now: Moment, name: &LockName, highest: FencingToken) -> Option<Note> {
        let revocation =
            self.0.get(&highest).filter(|revocation| now < revocation.until && revocation.name == *name)?;
        Some(revocation.by.clone())
    }
}
