//! What a node answers operators.

use std::ops::Bound;

use lock_core::inspect::{Cursor, Query, Revoked, glob_matches};
use lock_core::node::{Inspection, OwnerDigest, Revocation, Shown, Told};
use lock_core::{FencingToken, LockName, Moment};

use super::lock::digest_of;
use super::store::{Freed, NodeStore};

impl NodeStore {
    pub(super) fn inspect(&mut self, clock: Moment, inspection: &Inspection) -> Told {
        match inspection {
            Inspection::List(query) => self.list(query),
            Inspection::Show(names) => Told::Shown(names.iter().map(|name| self.show(clock, name)).collect()),
            Inspection::Owners(name, token) => Told::Owners(self.owners(clock, name, *token)),
            Inspection::Revoke(revocation) => Told::Revoked(self.revoke(clock, revocation)),
            Inspection::RevokedBy(leases) => Told::RevokedBy(
                leases.iter().map(|(name, token)| self.locks.get(name)?.revoked_by(clock, *token).cloned()).collect(),
            ),
        }
    }

    /// By name, from the one after the cursor on.
    fn list(&self, query: &Query) -> Told {
        // At least one, or the listing would never end.
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX).max(1);
        let begin = query.cursor.as_ref().map_or(Bound::Unbounded, |Cursor(after)| Bound::Excluded(after.as_str()));
        let later = self.locks.range::<str, _>((begin, Bound::Unbounded)).map(|(name, _)| name);
        let mut names: Vec<_> =
            later.filter(|name| glob_matches(&query.pattern, name.as_str())).take(limit + 1).cloned().collect();
        let more = names.len() > limit;
        names.truncate(limit);
        let next = names.last().filter(|_| more).map(|last| Cursor(last.to_string()));
        Told::Listed { names, next }
    }

    fn show(&self, clock: Moment, name: &LockName) -> Option<Shown> {
        self.holder(name, clock).map(|hold| Shown { owner: digest_of(hold.owner), held: hold.shown(clock) })
    }

    fn owners(&self, clock: Moment, name: &LockName, token: FencingToken) -> Vec<OwnerDigest> {
        self.locks.get(name).map(|lock| lock.owners(clock, token)).unwrap_or_default()
    }

    fn revoke(&mut self, clock: Moment, revocation: &Revocation) -> Revoked {
        let lock = self.locks.entry(revocation.name.clone()).or_default();
        lock.forget_expired(clock);
        if !lock.revoke(clock, revocation) {
            return Revoked::NotHeld;
        }
        let tell = |client| Freed { client, name: revocation.name.clone() };
        self.freed.extend(lock.next_to_tell().map(tell));
        Revoked::Revoked
    }
}
