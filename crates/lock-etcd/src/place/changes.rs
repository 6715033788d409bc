//! How an entry that is there is changed: it takes slots, draws higher tokens, or becomes that of another owner.

use lock_core::{Claim, Limit, Mode, Owner};
use tonic::Status;

use super::entry_leases::EntryLeases;
use super::writing::Attempt;
use super::{Place, State};
use crate::cluster::Cluster;
use crate::directory::OwnerHash;
use crate::entry::{Entry, Value};
use crate::listed::Listed;
use crate::proto::{Compare, RequestOp};
use crate::txn;

/// What else a change compares, and what else it writes.
pub(super) type Beyond = (Vec<Compare>, Vec<RequestOp>);

impl Place {
    /// Writes another value into the entry. Returns false if the entry is not what it was, or if a comparison does not hold.
    pub(super) async fn change(
        &mut self,
        cluster: &Cluster,
        value: &Value,
        (mut compare, mut writes): Beyond,
    ) -> Result<bool, Status> {
        let Some(is_there) = self.is_there() else { return Ok(false) };
        let State::There(_, leases) = &self.state else { return Ok(false) };
        writes.push(txn::put(is_there.key.clone(), value.to_wire(), leases.for_change()));
        let read = [txn::get(is_there.key.clone())];
        compare.push(is_there);
        let (told, seen) = cluster.transact(txn::transaction(compare, [writes, vec![]], &read)).await?;
        self.confirm(told.key(0), seen);
        Ok(told.succeeded)
    }

    /// Takes these slots for the permits of an entry whose turn has come, unless others were faster or the limit has changed. Keys of slots that
    /// no entry has any more come with the revisions of their latest changes; those of free slots with 0.
    pub(crate) async fn take_slots(
        &mut self,
        cluster: &Cluster,
        free: &[(u32, i64)],
        (limit, limit_set): (Option<Limit>, i64),
    ) -> Result<(), Status> {
        self.find_lease(cluster, self.ttl.get()).await?;
        let (State::There(_, leases), Some(value)) = (&self.state, &self.value) else { return Ok(()) };
        let slots: Vec<u32> = free.iter().map(|(slot, _)| *slot).collect();
        let key = |slot: u32| self.directory.slot(slot);
        let taken = free.iter().map(|(slot, modified)| txn::is_at(key(*slot), *modified));
        let compare = taken.chain([txn::is_at(self.directory.limit(), limit_set)]).collect();
        let puts = slots.iter().map(|slot| txn::put(key(*slot), Vec::new(), leases.for_change())).collect();
        let value = value.granted_with(&slots, limit);
        self.change(cluster, &value, (compare, puts)).await.map(drop)
    }

    /// Draws tokens for an entry whose turn has come, as it was listed at this revision, and that waited while a lease was replaced: tokens of
    /// replacements are higher than its own.
    pub(crate) async fn draw_anew(&mut self, cluster: &Cluster, listed: i64) -> Result<(), Status> {
        let Some(value) = self.value.as_ref().map(Value::drawn_anew) else { return Ok(()) };
        let compare = vec![txn::is_unchanged(&self.directory, listed)];
        self.change(cluster, &value, (compare, vec![])).await.map(drop)
    }

    /// Makes the listed entry of `old` the one of this owner, in its position. Returns the directory as it is then, or `None` if the owner was
    /// given up.
    pub(crate) async fn replace(
        &mut self,
        cluster: &Cluster,
        claim: &Claim,
        (old, entry, listed): (Owner, &Entry, &Listed),
    ) -> Result<Option<Listed>, Status> {
        let (lease, noted) = (cluster.leases.take(self.ttl.get()).await?, cluster.lease_of_notes().await?);
        let Some(value) = entry.value.as_ref().map(|value| value.replaced_by(claim)) else { return Ok(None) };
        let mut compare = vec![txn::is_at(entry.key.clone(), entry.version.modified)];
        let first_waiter = listed.first_waiter();
        // Entries that come behind a waiter wait.
        if claim.terms.mode == Mode::Exclusive || first_waiter.is_none() {
            compare.push(txn::is_unchanged(&self.directory, listed.revision));
        }
        // A waiter may become a reader without a write. While the first one waits, all do.
        compare.extend(txn::stand(listed, first_waiter.map(|first| &first.key)));
        let note =
            |first: &Entry| txn::put(self.directory.replaced(), first.version.created.to_string().into_bytes(), noted);
        let tombstone = txn::put(OwnerHash::of(old).tombstone(cluster.root()), Vec::new(), noted);
        let notes = first_waiter.map(note).into_iter().chain([tombstone]);
        let slots = entry.slots().iter().map(|slot| (self.directory.slot(*slot), value.slots.contains(slot)));
        let slots = slots.map(
            |(slot, is_kept)| {
                if is_kept { txn::put(slot, Vec::new(), lease.id()) } else { txn::delete(slot) }
            },
        );
        let writes = slots.chain(notes).collect();
        let (leases, created) = (EntryLeases::of(entry.key.clone(), lease), Some(entry.version.created));
        self.attempt(cluster, Attempt { leases, value, created, compare, writes }).await
    }
}
