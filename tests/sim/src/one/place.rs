//! What a client has at a store where each entry ends with a lease of its own.

use std::time::Duration;

use lock_core::Moment;
use lock_rules::{LeaseProof, Seen};

use super::known::{Known, LeaseId, Version};
use super::mistake::Mistake;

/// A lease of the store, for one entry.
#[derive(Debug)]
pub(super) struct OwnLease {
    pub(super) id: LeaseId,
    pub(super) lasts: Duration,
    pub(super) proof: LeaseProof,
}

/// What one owner has at the store.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) key: LeaseId,
    /// The version of the entry that is there, if it is known to be.
    pub(super) version: Option<Version>,
    /// Whether the entry says that it holds.
    pub(super) is_marked: bool,
    pub(super) current: OwnLease,
    /// The one that the entry is being moved to.
    pub(super) next: Option<OwnLease>,
    /// How many claims were not answered: they may still write the entry.
    pub(super) unanswered: u32,
}

impl OwnLease {
    /// Whether little of its time is left.
    pub(super) fn is_old(&self, now: Moment) -> bool {
        self.proof.lasts(now) < self.lasts / 3 * 2
    }

    /// Whether renewals of it can count.
    pub(super) fn counts(&self, term: Option<u64>, mistake: Option<Mistake>) -> bool {
        let is_in_term = self.proof.granted_in().is_some() && self.proof.granted_in() == term;
        is_in_term || matches!(mistake, Some(Mistake::KeepaliveCounts | Mistake::AnyTermCounts))
    }
}

impl Place {
    pub(super) fn new(lease: OwnLease) -> Self {
        Self { key: lease.id, version: None, is_marked: false, current: lease, next: None, unanswered: 0 }
    }

    pub(super) fn known(&self) -> Known {
        let Self { key, version, is_marked, .. } = *self;
        Known { key, version, lease: self.next.as_ref().unwrap_or(&self.current).id, is_marked }
    }

    pub(super) fn leases(&mut self) -> impl Iterator<Item = &mut OwnLease> {
        [Some(&mut self.current), self.next.as_mut()].into_iter().flatten()
    }

    /// Remembers what was read of its entry, which is there.
    pub(super) fn learn(&mut self, known: Known, seen: &Seen) {
        (self.key, self.version, self.is_marked) = (known.key, known.version, known.is_marked);
        if let Some(next) = self.next.take_if(|next| next.id == known.lease) {
            self.current = next;
        } else if known.lease != self.current.id {
            self.current =
                OwnLease { id: known.lease, lasts: Duration::ZERO, proof: LeaseProof::new(Moment::ORIGIN, None) };
        }
        self.current.proof.prove(seen);
    }
}
