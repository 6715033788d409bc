//! What the server stores.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{Claim, Lease, Moment, Owner, Slots, TokenRange};

use crate::one::{Seat, SessionId};

/// What it stores.
#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    /// How often it was changed.
    pub(super) version: u64,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) ended: BTreeSet<SessionId>,
    /// Those of all locks, in the order in which they came.
    pub(super) entries: Vec<Entry>,
    /// Whose claims come too late, for the rest of the session.
    pub(super) barred: BTreeSet<(SessionId, Owner)>,
    pub(super) counter: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) ends: Moment,
    /// Whether it refuses to release anything.
    pub(super) refuses: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) session: SessionId,
    pub(super) claim: Claim,
    pub(super) seat: Seat,
    /// Once it holds.
    pub(super) tokens: Option<TokenRange>,
}

impl Entry {
    pub(super) fn lease(&self) -> Option<Lease> {
        let Claim { name, owner, terms, .. } = self.claim.clone();
        Some(Lease { name, owner, tokens: self.tokens?, terms, slots: Slots::NONE })
    }
}
