//! The leases of etcd that an entry ends with.

use std::mem;
use std::time::Duration;

use lock_core::Moment;

use crate::leases::Lease;
use crate::servers::Seen;

/// The leases of an entry.
pub(crate) struct EntryLeases {
    /// The key of the entry.
    pub(super) key: Vec<u8>,
    pub(super) current: Lease,
    /// The one that the entry is to be moved to: that of a place is too short, and renewals count only in the term of the grant.
    pub(super) next: Option<Lease>,
    /// The one that it was moved from. It names the key, so no other entry may have it.
    pub(super) earlier: Option<Lease>,
    /// How many writes were not answered. They may still be carried out.
    pub(super) unanswered: u32,
}

impl EntryLeases {
    pub(super) const fn of(key: Vec<u8>, lease: Lease) -> Self {
        Self { key, current: lease, next: None, earlier: None, unanswered: 0 }
    }

    /// The lease for the next change of the entry.
    pub(super) fn for_change(&self) -> i64 {
        self.next.as_ref().unwrap_or(&self.current).id()
    }

    /// Remembers the lease that the key was read with.
    pub(super) fn learn(&mut self, lease: i64, seen: Seen) {
        if let Some(next) = self.next.take_if(|next| next.id() == lease) {
            self.earlier = Some(mem::replace(&mut self.current, next));
        } else if lease != self.current.id() {
            // Another client of the owner has moved it.
            self.earlier = Some(mem::replace(&mut self.current, Lease::of_others(lease, None)));
        }
        self.current.prove(seen);
    }

    /// How long the entry is sure to last from this moment on.
    pub(super) fn lasts(&self, since: Moment) -> Duration {
        self.current.lasts(since)
    }

    /// Those that other entries may have once this one is deleted: none that a late write could still use.
    pub(super) fn reusable(self) -> impl Iterator<Item = Lease> {
        let all = [Some(self.current), self.next, self.earlier];
        all.into_iter().flatten().filter(move |_| self.unanswered == 0)
    }
}
