//! What one owner has at a lock: its entry, and the leases of etcd that this entry ends with.

mod changes;

use std::mem;
use std::time::Duration;

use lock_core::{Claim, Mode, Moment, Owner, Ttl};
use lock_rules::{PLACE_MAX, place_for};
use tonic::{Code, Status};

use crate::cluster::Cluster;
use crate::directory::{Directory, OwnerHash};
use crate::entry::{Entry, Listed, Turn, Value};
use crate::leases::Lease;
use crate::proto::RequestOp;
use crate::servers::Seen;
use crate::txn;

/// The place of one owner at a lock.
pub(crate) struct Place {
    pub(crate) directory: Directory,
    owner: OwnerHash,
    ttl: Ttl,
    /// The value of the entry, as far as it is known.
    value: Option<Value>,
    /// The revision that its tokens come from.
    pub(crate) drawn_at: i64,
    pub(crate) state: State,
    /// Whether it was found to hold.
    pub(crate) is_granted: bool,
}

/// What is known of the entry.
pub(crate) enum State {
    /// There is none.
    None,
    /// There may be one.
    Unknown(Leases),
    /// There is one, which was created at this revision.
    There(i64, Leases),
}

/// The leases of an entry.
pub(crate) struct Leases {
    /// The key of the entry.
    key: Vec<u8>,
    current: Lease,
    /// The one that the entry is being moved to, because it was granted: a place lasts for less than the ttl.
    next: Option<Lease>,
    /// The one that it was moved from. It names the key, so no other entry may have it.
    earlier: Option<Lease>,
    /// How many writes were not answered. They may still be carried out.
    unanswered: u32,
}

/// Beside whom an entry may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nobody: it holds.
    Nobody,
    /// Those that were listed at this revision, and nobody else: it fits beside them.
    Holders(i64),
    /// Others, which may make it wait.
    Others,
}

impl Place {
    pub(crate) fn new(directory: Directory, owner: Owner, ttl: Ttl) -> Self {
        Self {
            directory,
            owner: OwnerHash::of(owner),
            ttl,
            value: None,
            drawn_at: 0,
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

    /// Writes the entry, unless it is there. Returns the directory as it is then, or `None` if the owner was given up.
    pub(crate) async fn write(
        &mut self,
        cluster: &Cluster,
        claim: &Claim,
        beside: Beside,
    ) -> Result<Option<Listed>, Status> {
        let mut leases = match mem::replace(&mut self.state, State::None) {
            State::Unknown(leases) | State::There(_, leases) => leases,
            State::None => {
                let lease = cluster.leases.take(self.lasts_for(beside)).await?;
                Leases::of(self.directory.entry(lease.id()), lease)
            }
        };
        let (key, tombstone) = (leases.key.clone(), self.owner.tombstone(cluster.root()));
        let mut compare = vec![txn::is_absent(tombstone.clone()), txn::is_absent(key.clone())];
        match beside {
            Beside::Nobody => compare.push(txn::is_empty(&self.directory)),
            Beside::Holders(listed) => compare.push(txn::is_unchanged(&self.directory, listed)),
            Beside::Others => {}
        }
        let (mut value, mut writes) = (Value::of(claim), Vec::new());
        // A lease that was taken for a place is too short.
        let holds = beside == Beside::Nobody && leases.current.ttl() >= self.ttl.get();
        if holds {
            value.slots = (0..claim.terms.mode.limit().map_or(0, |_| claim.terms.mode.count())).collect();
            value = value.granted_now();
            let slots = value.slots.iter().map(|slot| self.directory.slot(*slot));
            compare.extend(slots.clone().map(txn::is_absent));
            writes.extend(slots.map(|slot| txn::put(slot, Vec::new(), leases.current.id())));
        }
        writes.push(txn::put(key.clone(), value.to_wire(), leases.current.id()));
        (self.value, self.is_granted) = (Some(value), false);
        leases.unanswered += 1;
        self.state = State::Unknown(leases);
        let branches = [writes, vec![txn::get(tombstone), txn::get(key)]];
        let (told, seen) = match cluster.look(&self.directory, compare, branches).await {
            Ok(told) => told,
            Err(failure) => {
                // The lease has ended: nothing was written.
                if failure.code() == Code::NotFound {
                    self.state = State::None;
                }
                return Err(failure);
            }
        };
        let created = if told.succeeded { Some(told.revision) } else { self.found(told.key(1)) };
        if told.succeeded {
            (self.drawn_at, self.is_granted) = (told.revision, holds);
        }
        if let State::Unknown(leases) = &mut self.state {
            leases.unanswered -= 1;
        }
        self.settle(cluster, created, seen);
        let is_given_up = !told.succeeded && told.key(0).is_some();
        Ok(told.listed.filter(|_| !is_given_up))
    }

    /// How long an entry has to last that is written beside others.
    fn lasts_for(&self, beside: Beside) -> Duration {
        match beside {
            Beside::Nobody => self.ttl.get(),
            Beside::Holders(_) | Beside::Others => place_for(self.ttl),
        }
    }

    /// When the entry with the key of this place was created, if it is the one of its owner.
    fn found(&mut self, entry: Option<Entry>) -> Option<i64> {
        let entry = entry.filter(|entry| entry.is_of(&self.owner))?;
        self.learn(&entry);
        Some(entry.created)
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

    /// Remembers that the entry was created at this revision, or that there is none.
    fn settle(&mut self, cluster: &Cluster, created: Option<i64>, seen: Seen) {
        let State::Unknown(mut leases) = mem::replace(&mut self.state, State::None) else { return };
        leases.current.prove(seen);
        match created {
            Some(created) => self.state = State::There(created, leases),
            None => cluster.leases.put_back(leases.reusable()),
        }
    }

    /// Lists the directory again, for an entry that is there. Returns `None` if it has ended.
    pub(crate) async fn list(&mut self, cluster: &Cluster) -> Result<Option<Listed>, Status> {
        let Some(is_there) = self.is_there() else { return Ok(None) };
        let read = txn::get(is_there.key.clone());
        let success = self.marking().into_iter().chain([read]).collect();
        let (told, seen) = cluster.look(&self.directory, vec![is_there], [success, vec![]]).await?;
        let entry = if told.succeeded { told.key(0) } else { None };
        Ok(told.listed.filter(|_| self.confirm(entry, seen)))
    }

    /// Makes the entry of this owner the one of this place, if another client of it has written one before.
    pub(crate) fn adopt(&mut self, listed: &Listed) -> bool {
        let Some(found) = listed.entries.iter().find(|entry| entry.is_of(&self.owner)) else { return false };
        if self.key().is_some_and(|key| key == found.key) {
            return false;
        }
        self.state = State::There(found.created, Leases::of(found.key.clone(), Lease::of_others(found.lease)));
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

    /// Sends a renewal of its leases. It counts with the next answer of the leader.
    pub(crate) async fn renew(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let ttl = self.ttl.get();
        let State::There(_, leases) = &mut self.state else { return Ok(()) };
        cluster.leases.renew(&mut leases.current).await?;
        let is_short = ttl > PLACE_MAX && leases.current.ttl() < ttl;
        if !self.is_granted || !is_short || leases.earlier.is_some() {
            return Ok(());
        }
        let lives = match &mut leases.next {
            Some(next) => cluster.leases.renew(next).await?,
            None => false,
        };
        if !lives {
            leases.next = Some(cluster.leases.take(ttl).await?);
        }
        Ok(())
    }

    /// What writes into the entry of a waiter that it was granted, and moves it to the lease that it has from now on.
    pub(crate) fn marking(&self) -> Option<RequestOp> {
        let State::There(_, leases) = &self.state else { return None };
        let value = self.value.as_ref().filter(|value| self.is_granted && !value.is_granted())?;
        let lease = leases.next.as_ref().unwrap_or(&leases.current);
        Some(txn::put(leases.key.clone(), value.granted_now().to_wire(), lease.id()))
    }

    /// What has to be true for the entry to be there.
    pub(crate) fn is_there(&self) -> Option<crate::proto::Compare> {
        let State::There(created, _) = &self.state else { return None };
        Some(txn::is_of(self.key()?, *created))
    }

    /// Compares the place with its key as it was read after a renewal. Returns whether it is still there.
    pub(crate) fn confirm(&mut self, read: Option<Entry>, seen: Seen) -> bool {
        let State::There(created, leases) = &mut self.state else { return false };
        let Some(entry) = read.filter(|entry| entry.created == *created) else {
            (self.state, self.is_granted) = (State::None, false);
            return false;
        };
        if let Some(next) = leases.next.take_if(|next| next.id() == entry.lease) {
            leases.earlier = Some(mem::replace(&mut leases.current, next));
        }
        leases.current.prove(seen);
        self.learn(&entry);
        true
    }

    /// How long the entry is sure to last from this moment on.
    pub(crate) fn lasts(&self, since: Moment) -> Duration {
        match &self.state {
            State::There(_, leases) => leases.current.lasts(since),
            State::None | State::Unknown(_) => Duration::ZERO,
        }
    }

    /// Whether the entry is sure to last for so little that it has to be renewed.
    pub(crate) fn is_old(&self) -> bool {
        matches!(&self.state, State::There(_, leases) if leases.current.is_old())
    }

    /// What the order means for this place in this mode.
    pub(crate) fn turn(&self, listed: &Listed, mode: Mode) -> Option<Turn> {
        listed.turn(&self.key().unwrap_or_default(), mode)
    }
}

impl Leases {
    const fn of(key: Vec<u8>, lease: Lease) -> Self {
        Self { key, current: lease, next: None, earlier: None, unanswered: 0 }
    }

    /// Those that other entries may have once this one is deleted: none that a late write could still use.
    fn reusable(self) -> impl Iterator<Item = Lease> {
        let all = [Some(self.current), self.next, self.earlier];
        all.into_iter().flatten().filter(move |_| self.unanswered == 0)
    }
}
