//! How an entry ends: it is deleted, or its lock is kept for a while.

use std::mem;
use std::time::Duration;

use lock_core::{Owner, Released};
use lock_rules::tombstone_for;
use tonic::Status;

use super::{Place, State};
use crate::cluster::Cluster;
use crate::directory::OwnerHash;
use crate::listed::LISTED_MAX;
use crate::proto::Compare;
use crate::txn;

/// How often an entry is deleted that another client of its owner changes. Chosen: only a bound.
const TRIES_MAX: u32 = 8;

impl Place {
    /// Deletes the entry.
    pub(crate) async fn delete(&mut self, cluster: &Cluster) -> Result<Released, Status> {
        if matches!(self.state, State::Unknown(_)) {
            self.look_for(cluster).await?;
        }
        for _ in 0..TRIES_MAX {
            match self.delete_if(cluster, vec![]).await? {
                Some(released) => return Ok(released),
                None if matches!(self.state, State::None) => return Ok(Released::NotHeld),
                None => {}
            }
        }
        Err(Status::aborted("the entry changed with each try to delete it"))
    }

    /// Deletes the entry, if these comparisons hold. Returns `None` if they do not, or if the entry is not what it was.
    pub(crate) async fn delete_if(
        &mut self,
        cluster: &Cluster,
        mut compare: Vec<Compare>,
    ) -> Result<Option<Released>, Status> {
        let (Some(key), Some(is_there)) = (self.key(), self.is_there()) else { return Ok(None) };
        compare.push(is_there);
        // A waiter may hold by now and not know it: the list is of the moment before.
        let slots = self.slots().iter().map(|slot| txn::delete(self.directory.slot(*slot)));
        let deletes = slots.chain([txn::delete(key.clone())]);
        let success = [txn::list(&self.directory, LISTED_MAX)].into_iter().chain(deletes).collect();
        let failure = vec![txn::get(key.clone())];
        let (told, seen) = cluster.transact(txn::transaction(compare, [success, failure], &[])).await?;
        if !told.succeeded {
            self.confirm(told.key(0), seen);
            return Ok(None);
        }
        if let State::There(_, leases) = mem::replace(&mut self.state, State::None) {
            cluster.leases.put_back(leases.reusable());
        }
        let holds = self.is_granted
            || told.list(0).is_some_and(|listed| listed.get(&key).is_some_and(|entry| listed.holds(entry)));
        Ok(Some(if holds { Released::Released } else { Released::Left }))
    }

    /// Finds out whether there is an entry.
    pub(crate) async fn look_for(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let Some(key) = self.key() else { return Ok(()) };
        let (told, seen) = cluster.read(vec![txn::get(key)]).await?;
        let version = self.found(told.key(0));
        self.settle(cluster, version, seen);
        Ok(())
    }

    /// Refuses late claims of its owner.
    pub(crate) async fn bury(&self, cluster: &Cluster) -> Result<(), Status> {
        let lease = cluster.leases.grant(tombstone_for(self.ttl)).await?;
        let write = txn::put(self.owner.tombstone(cluster.root()), Vec::new(), lease.id());
        cluster.transact(txn::transaction(vec![], [vec![write], vec![]], &[])).await.map(drop)
    }

    /// Whether late claims of its owner are refused.
    pub(crate) async fn is_given_up(&self, cluster: &Cluster) -> Result<bool, Status> {
        let (told, _) = cluster.read(vec![txn::get(self.owner.tombstone(cluster.root()))]).await?;
        Ok(told.key(0).is_some())
    }

    /// Lets the entry of a holder end by itself after this time. Until then, the kept owner has it. Returns false if the owner does not hold.
    pub(crate) async fn keep(&mut self, cluster: &Cluster, owner: Owner, time: Duration) -> Result<bool, Status> {
        let lease = cluster.leases.grant(time).await?;
        for _ in 0..TRIES_MAX {
            let holds = self.value.as_ref().filter(|_| self.is_granted);
            let (Some(is_there), Some(value)) = (self.is_there(), holds) else { return Ok(false) };
            let key = is_there.key.clone();
            let kept = value.kept_for(OwnerHash::of(owner.kept())).with_tokens_of(self.drawn_at);
            let write = txn::put(key.clone(), kept.to_wire(), lease.id());
            let branches = [vec![write], vec![txn::get(key)]];
            let (told, seen) = cluster.transact(txn::transaction(vec![is_there], branches, &[])).await?;
            if told.succeeded {
                // Its leases are not used again: they may name the key.
                (self.state, self.is_granted) = (State::None, false);
                return Ok(true);
            }
            self.confirm(told.key(0), seen);
        }
        Err(Status::aborted("the entry changed with each try to keep it"))
    }

    /// Keeps a lock that is kept for this owner for no longer than this time. Returns whether it is kept.
    pub(crate) async fn keep_no_longer(
        &mut self,
        cluster: &Cluster,
        owner: Owner,
        time: Duration,
    ) -> Result<bool, Status> {
        let State::There(_, leases) = &self.state else { return Ok(false) };
        let is_longer = cluster.leases.remaining(leases.current.id()).await?.is_some_and(|remaining| remaining > time);
        if is_longer { self.keep(cluster, owner, time).await } else { Ok(self.is_granted) }
    }
}
