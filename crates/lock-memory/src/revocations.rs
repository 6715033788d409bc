//! Who revoked which lease.

use std::collections::BTreeMap;

use lock_core::inspect::REMEMBERED_MIN;
use lock_core::{FencingToken, LockName, Moment, Note};

use crate::holds::Hold;

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
    /// Remembers who ended a hold, and forgets what is over.
    pub(crate) fn remember(&mut self, now: Moment, name: &LockName, ended: &Hold, by: &Note) {
        self.0.retain(|_, revocation| now < revocation.until);
        let until = ended.until.max(now + REMEMBERED_MIN);
        self.0.insert(ended.tokens.high(), Revocation { name: name.clone(), by: by.clone(), until });
    }

    /// Who revoked the lease with this highest token.
    pub(crate) fn by(&self, now: Moment, name: &LockName, highest: FencingToken) -> Option<Note> {
        let revocation =
            self.0.get(&highest).filter(|revocation| now < revocation.until && revocation.name == *name)?;
        Some(revocation.by.clone())
    }
}
