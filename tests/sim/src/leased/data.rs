//! What is stored, in the order of revisions.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{Claim, Owner, TokenRange, Width};
use lock_rules::tombstone_for;

use crate::one::{Known, LeaseId, Refused, Version};
use crate::ordered::{Entries, Entry};

/// What all servers agree on, each sooner or later.
#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    pub(super) revision: u64,
    pub(super) entries: Entries<Tie>,
    /// How long each lasts from a renewal.
    pub(super) leases: BTreeMap<LeaseId, Duration>,
    /// Whose late claims are refused, each until a lease ends.
    pub(super) buried: BTreeMap<Owner, LeaseId>,
    pub(super) counter: u64,
}

/// What is known of an entry besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tie {
    pub(super) key: LeaseId,
    pub(super) lease: LeaseId,
    pub(super) version: Version,
    /// Whether it says that it holds.
    pub(super) is_marked: bool,
}

impl From<Tie> for Known {
    fn from(tie: Tie) -> Self {
        Self { key: tie.key, version: Some(tie.version), lease: tie.lease, is_marked: tie.is_marked }
    }
}

impl Data {
    /// The base of the tokens is raised, and so are those of all entries.
    pub(super) fn raise(&mut self, counter: u64) {
        let by = counter.saturating_sub(self.counter);
        self.counter += by;
        self.entries.all_mut().iter_mut().for_each(|entry| entry.raise(by));
    }

    /// What is there of an owner.
    pub(super) fn known(&self, owner: Owner) -> Option<Known> {
        self.entries.entry(owner).map(|entry| entry.tie.into())
    }

    /// Draws tokens.
    pub(super) fn draw(&mut self, width: Width) -> Result<TokenRange, Refused> {
        let tokens = TokenRange::above(self.counter, width).map_err(|_| Refused::Spent)?;
        self.counter = tokens.high().get();
        Ok(tokens)
    }

    /// Writes an entry at the end of the order.
    pub(super) fn create(&mut self, claim: &Claim, tokens: TokenRange, lease: LeaseId) {
        self.revision += 1;
        let version = Version { created: self.revision, modified: self.revision };
        let tie = Tie { key: lease, lease, version, is_marked: false };
        self.entries.add(Entry::new(tie, claim, tokens));
    }

    /// Deletes some.
    pub(super) fn delete(&mut self, which: impl Fn(&Entry<Tie>) -> bool) {
        if !self.entries.remove(which).is_empty() {
            self.revision += 1;
        }
    }

    /// A lease has ended, and what ends with it.
    pub(super) fn end(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
        self.buried.retain(|_, other| *other != lease);
        self.delete(|entry| entry.tie.lease == lease);
    }

    /// How long late claims are refused that ask for this.
    pub(super) fn refuses_for(ttl: lock_core::Ttl) -> Duration {
        tombstone_for(ttl)
    }
}
