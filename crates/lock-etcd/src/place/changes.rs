//! How an entry that is there is changed: it takes slots, or is deleted.

use std::mem;

use lock_core::Released;
use lock_rules::tombstone_for;
use tonic::Status;

use super::{Place, State};
use crate::cluster::Cluster;
use crate::entry::LISTED_MAX;
use crate::txn;

impl Place {
    /// Deletes the entry.
    pub(crate) async fn delete(&mut self, cluster: &Cluster) -> Result<Released, Status> {
        if matches!(self.state, State::Unknown(_)) {
            self.look_for(cluster).await?;
        }
        let (Some(key), Some(is_there)) = (self.key(), self.is_there()) else { return Ok(Released::NotHeld) };
        // A waiter may hold by now and not know it: the list is of the moment before.
        let slots = self.slots().iter().map(|slot| txn::delete(self.directory.slot(*slot)));
        let deletes = slots.chain([txn::delete(key.clone())]);
        let success = [txn::list(&self.directory, LISTED_MAX)].into_iter().chain(deletes).collect();
        let (told, _) = cluster.transact(txn::transaction(vec![is_there], [success, vec![]], &[])).await?;
        let state = mem::replace(&mut self.state, State::None);
        if !told.succeeded {
            return Ok(Released::NotHeld);
        }
        if let State::There(_, leases) = state {
            cluster.leases.put_back(leases.reusable());
        }
        let holds = self.is_granted
            || told.list(0).is_some_and(|listed| listed.get(&key).is_some_and(|entry| listed.holds(entry)));
        Ok(if holds { Released::Released } else { Released::Left })
    }

    /// Takes slots for the permits of an entry whose turn has come, unless others were faster.
    pub(crate) async fn take_slots(&mut self, cluster: &Cluster, free: &[u32]) -> Result<(), Status> {
        let ttl = self.ttl.get();
        let (Some(is_there), Some(value)) = (self.is_there(), self.value.clone()) else { return Ok(()) };
        let State::There(_, leases) = &mut self.state else { return Ok(()) };
        if leases.current.ttl() < ttl {
            leases.next = Some(cluster.leases.take(ttl).await?);
        }
        let lease = leases.next.as_ref().unwrap_or(&leases.current).id();
        leases.unanswered += 1;
        let value = value.granted_with(free);
        let slots = || free.iter().map(|slot| self.directory.slot(*slot));
        let compare = [is_there.clone()].into_iter().chain(slots().map(txn::is_absent)).collect();
        let puts = slots().map(|slot| txn::put(slot, Vec::new(), lease));
        let success = puts.chain([txn::put(is_there.key.clone(), value.to_wire(), lease)]).collect();
        let read = [txn::get(is_there.key)];
        let (told, seen) = cluster.transact(txn::transaction(compare, [success, vec![]], &read)).await?;
        leases.unanswered -= 1;
        self.confirm(told.key(0), seen);
        Ok(())
    }

    /// Finds out whether there is an entry.
    async fn look_for(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let Some(key) = self.key() else { return Ok(()) };
        let (told, seen) = cluster.transact(txn::transaction(vec![], [vec![], vec![]], &[txn::get(key)])).await?;
        let created = self.found(told.key(0));
        self.settle(cluster, created, seen);
        Ok(())
    }

    /// Refuses late claims of its owner.
    pub(crate) async fn bury(&self, cluster: &Cluster) -> Result<(), Status> {
        let lease = cluster.leases.grant(tombstone_for(self.ttl)).await?;
        let write = txn::put(self.owner.tombstone(cluster.root()), Vec::new(), lease.id());
        cluster.transact(txn::transaction(vec![], [vec![write], vec![]], &[])).await.map(drop)
    }
}
