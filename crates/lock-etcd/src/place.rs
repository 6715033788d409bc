//! What one owner has at a lock: its entry, and the leases of etcd that this entry ends with.

mod changes;
mod ending;
mod entry_leases;
mod writing;

use std::mem;
use std::time::Duration;

use lock_core::{Limit, Mode, Moment, Owner, Ttl};
use lock_rules::place_for;
use tonic::Status;

use crate::cluster::Cluster;
use crate::directory::{Directory, OwnerHash};
use crate::entry::{Entry, Value, Version};
use crate::error::is_full;
use crate::leases::Lease;
use crate::listed::{Listed, Turn};
use crate::place::entry_leases::EntryLeases;
use crate::proto::{Compare, RequestOp};
use crate::servers::Seen;
use crate::txn;

pub(crate) use writing::Beside;

/// The place of one owner at a lock.
pub(crate) struct Place {
    pub(crate) directory: Directory,
    owner: OwnerHash,
    ttl: Ttl,
    /// The value of the entry, as far as it is known.
    value: Option<Value>,
    /// The revision that its tokens come from.
    pub(crate) drawn_at: i64,
    /// The revision of the latest replacement during which it waited. Its tokens have to be higher.
    floor: i64,
    pub(crate) state: State,
    /// Whether it was found to hold.
    pub(crate) is_granted: bool,
}

/// What is known of the entry.
pub(crate) enum State {
    /// There is none.
    None,
    /// There may be one.
    Unknown(EntryLeases),
    /// There is one, and this version of it is known.
    There(Version, EntryLeases),
}

impl Place {
    pub(crate) fn new(directory: Directory, owner: Owner, ttl: Ttl) -> Self {
        Self {
            directory,
            owner: OwnerHash::of(owner),
            ttl,
            value: None,
            drawn_at: 0,
            floor: 0,
            state: State::None,
            is_granted: false,
        }
    }

    /// The key of the entry. `None` if there is none.
    pub(crate) fn key(&self) -> Option<Vec<u8>> {
        match &self.state {
            State::None => None,
            State::Unknown(leases) | State::There(_, leases) => Some(leases.key.clone()),
        }
    }

    /// The entry with the key of this place, if it is the one of its owner.
    fn found(&mut self, entry: Option<Entry>) -> Option<Version> {
        let entry = entry.filter(|entry| entry.is_of(&self.owner))?;
        self.learn(&entry);
        Some(entry.version)
    }

    /// Remembers what the entry says.
    fn learn(&mut self, entry: &Entry) {
        self.value.clone_from(&entry.value);
        self.drawn_at = entry.drawn_at();
        self.is_granted |= !entry.slots().is_empty();
    }

    /// The slots of its permits, if it holds them.
    pub(crate) fn slots(&self) -> &[u32] {
        self.value.as_ref().map_or(&[], |value| &value.slots)
    }

    /// The mode that it is granted in: under the limit in force, or under one that is above its slots.
    pub(crate) fn granted_mode(&self, listed: &Listed, mode: Mode) -> Mode {
        let in_force = listed.under_limit(mode);
        let above = self.slots().iter().max().and_then(|slot| Limit::new(slot.saturating_add(1)).ok());
        above.filter(|above| in_force.limit() < Some(*above)).map_or(in_force, |above| mode.under(above))
    }

    /// Remembers this version of the entry, or that there is none.
    fn settle(&mut self, cluster: &Cluster, version: Option<Version>, seen: Seen) {
        let State::Unknown(mut leases) = mem::replace(&mut self.state, State::None) else { return };
        leases.current.prove(seen);
        match version {
            Some(version) => self.state = State::There(version, leases),
            None => cluster.leases.put_back(leases.reusable()),
        }
    }

    /// Lists the directory again, for an entry that is there. Returns `None` if it has ended.
    pub(crate) async fn list(&mut self, cluster: &Cluster) -> Result<Option<Listed>, Status> {
        let Some(is_there) = self.is_there() else { return Ok(None) };
        let read = txn::get(is_there.key.clone());
        let proof = self.is_pending().then(|| txn::log(cluster.root()));
        let reads: Vec<_> = proof.into_iter().chain([read]).collect();
        let look = |moving: Vec<RequestOp>| {
            let branches = [[&moving[..], &reads[..]].concat(), reads.clone()];
            cluster.look(&self.directory, vec![is_there.clone()], branches)
        };
        let (told, seen) = match look(self.moving()).await {
            // Without room, nothing is written, and the rest works.
            Err(failure) if is_full(&failure) => look(Vec::new()).await?,
            told => told?,
        };
        let entry = told.key(0);
        Ok(told.listed.filter(|_| self.confirm(entry, seen)))
    }

    /// Makes the entry of this owner the one of this place, if another client of it has written one before.
    pub(crate) fn adopt(&mut self, listed: &Listed) -> bool {
        let Some(found) = listed.entries.iter().find(|entry| entry.is_of(&self.owner)) else { return false };
        if self.key().is_some_and(|key| key == found.key) {
            return false;
        }
        let leases = EntryLeases::of(found.key.clone(), Lease::of_others(found.lease, None));
        self.state = State::There(found.version, leases);
        self.learn(found);
        true
    }

    /// Looks for an entry that another client of this owner has written.
    pub(crate) async fn find(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let listed = cluster.list_all(&self.directory).await?;
        if !self.adopt(&listed) {
            return Ok(());
        }
        let key = self.key().unwrap_or_default();
        self.is_granted = listed.get(&key).is_some_and(|entry| listed.holds(entry));
        Ok(())
    }

    /// Finds out whether it holds.
    pub(crate) async fn finds_itself_granted(&mut self, cluster: &Cluster) -> Result<bool, Status> {
        let (key, listed) = (self.key().unwrap_or_default(), self.list(cluster).await?);
        self.is_granted |= listed.is_some_and(|listed| listed.get(&key).is_some_and(|entry| listed.holds(entry)));
        Ok(self.is_granted)
    }

    /// Sends a renewal of its lease, which counts with the next answer of the leader, or takes the lease that the entry is to be moved to.
    pub(crate) async fn renew(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let State::There(_, leases) = &mut self.state else { return Ok(()) };
        if cluster.leases.renewals_count(&leases.current) {
            cluster.leases.renew(&mut leases.current).await?;
        }
        self.find_lease(cluster, if self.is_granted { self.ttl.get() } else { place_for(self.ttl) }).await
    }

    /// Has another lease ready, if that of the entry lasts for less than this, or if its renewals do not count any more.
    async fn find_lease(&mut self, cluster: &Cluster, lasts: Duration) -> Result<(), Status> {
        let State::There(_, leases) = &mut self.state else { return Ok(()) };
        let is_ready = match &mut leases.next {
            Some(next) => cluster.leases.renewals_count(next) && cluster.leases.renew(next).await?,
            None => cluster.leases.renewals_count(&leases.current) && leases.current.ttl() >= lasts,
        };
        if is_ready {
            return Ok(());
        }
        leases.next = match cluster.leases.take(lasts).await {
            // Without room there are no new leases, and what lasts goes on to do so.
            Err(failure) if is_full(&failure) => None,
            taken => Some(taken?),
        };
        Ok(())
    }

    /// What moves the entry, with its slots, to the lease that is ready for it, and notes that it was granted. Empty if neither is needed.
    pub(crate) fn moving(&self) -> Vec<RequestOp> {
        let (State::There(_, leases), Some(value)) = (&self.state, &self.value) else { return Vec::new() };
        let is_noted = value.is_granted() || !self.is_granted;
        if is_noted && leases.next.is_none() {
            return Vec::new();
        }
        let value = if is_noted { value.clone() } else { value.granted_now() };
        let (value, lease) = (value.with_tokens_of(self.drawn_at).to_wire(), leases.for_change());
        let slots = self.slots().iter().map(|slot| txn::put(self.directory.slot(*slot), Vec::new(), lease));
        [txn::put(leases.key.clone(), value, lease)].into_iter().chain(slots).collect()
    }

    /// What has to be true for the known version of the entry to be there.
    pub(crate) fn is_there(&self) -> Option<Compare> {
        let State::There(version, leases) = &self.state else { return None };
        Some(txn::is_at(leases.key.clone(), version.modified))
    }

    /// Compares the place with its key as it was read. Returns whether its entry is still there.
    pub(crate) fn confirm(&mut self, read: Option<Entry>, seen: Seen) -> bool {
        let State::There(version, leases) = &mut self.state else { return false };
        let is_same = |entry: &Entry| entry.version.created == version.created && entry.is_of(&self.owner);
        let Some(entry) = read.filter(is_same) else {
            (self.state, self.is_granted) = (State::None, false);
            return false;
        };
        *version = entry.version;
        leases.learn(entry.lease, seen);
        self.learn(&entry);
        true
    }

    /// How long the entry is sure to last from this moment on.
    pub(crate) fn lasts(&self, since: Moment) -> Duration {
        match &self.state {
            State::There(_, leases) => leases.lasts(since),
            State::None | State::Unknown(_) => Duration::ZERO,
        }
    }

    /// Whether its lease was renewed, and that is not proved yet.
    fn is_pending(&self) -> bool {
        matches!(&self.state, State::There(_, leases) if leases.current.is_pending())
    }

    /// Whether the entry is sure to last for so little that it has to be renewed.
    pub(crate) fn is_old(&self) -> bool {
        matches!(&self.state, State::There(_, leases) if leases.current.is_old())
    }

    /// Whether its tokens are higher than those of all leases before it.
    pub(crate) fn is_above(&mut self, listed: &Listed) -> bool {
        if let State::There(version, _) = &self.state {
            self.floor = self.floor.max(listed.changes.floor(version.created));
        }
        self.drawn_at >= self.floor
    }

    /// What the order means for this place in this mode.
    pub(crate) fn turn(&self, listed: &Listed, mode: Mode) -> Option<Turn> {
        listed.turn(&self.key().unwrap_or_default(), mode)
    }
}
