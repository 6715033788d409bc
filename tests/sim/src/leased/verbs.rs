//! What the servers answer.

use lock_core::inspect::Revoked;
use lock_core::latch::Seen;
use lock_core::{
    Answer, Certainty, Claim, FencingToken, Lease, LockName, Mode, Moment, Owner, ReleaseRequest, Released, Renewed,
};
use lock_rules::place_for;

use super::data::{Data, Tie};
use super::store::Server;
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{Ask, Known, LeaseId, Mistake, Refused, Say, Seat, Told};
use crate::ordered::{Entry, Judged, Turn, Watch};

impl Server {
    pub(super) fn answer(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Say {
        let at = Self::at(conn);
        match ask {
            Ask::Hello(inbox) => {
                inbox.iter().for_each(|inbox| self.listeners.add(*inbox, conn));
                Say::Hello
            }
            Ask::KeepAlive(ids) => self.keep_alive(now, at, ids),
            Ask::Revoke(name, token) => Say::Revoke(self.revoke(name, *token)),
            Ask::Grant(_) | Ask::Txn(..) if !self.can_order(now, at) => Say::Silence,
            Ask::Grant(time) => Say::Granted(self.grant(now, *time), self.term),
            Ask::Txn(ask, known) => self.transact(now, conn, ask, known),
            Ask::Latch(..) => Say::Latch(Seen { state: None, told: false }),
            Ask::ForeignSet(..) | Ask::ForeignDelete(..) => Say::Foreign(false),
            Ask::Join(..) | Ask::Beat | Ask::CatchUp | Ask::EndSession | Ask::Topology => Say::Hello,
            Ask::Acquire(..) | Ask::Renew(_) | Ask::Release(_) | Ask::Fence(_) | Ask::Look(_) => Say::NoLease,
        }
    }

    fn transact(&mut self, now: Moment, conn: ConnId, ask: &Ask, known: &[Known]) -> Say {
        let at = Self::at(conn);
        // What a server answers that the leader has ordered, it has.
        self.catch_up(at);
        let answer = if let Ask::Acquire(claim, seat) = ask {
            if self.is_lease_missing(claim, known) {
                return Say::NoLease;
            }
            self.move_waiter(claim.owner, known);
            Some(Say::Acquire(self.acquire(conn, claim, *seat, known)))
        } else if let Ask::Renew(leases) = ask {
            self.renew(leases, known).map(Say::Renew)
        } else if let Ask::Release(request) = ask {
            self.release(now, request, known).map(|told| Say::Release(Ok(told)))
        } else {
            Some(Say::Hello)
        };
        self.catch_up(at);
        let entries = ask.owners().into_iter().map(|owner| self.data.known(owner)).collect();
        Say::Txn(answer.map(Box::new), Told { term: self.members[at].term, entries })
    }

    fn at_key(&self, key: LeaseId) -> Option<&Entry<Tie>> {
        self.data.entries.all().iter().find(|entry| entry.tie.key == key)
    }

    /// Moves an entry that is as it was known to be to the lease that it is to end with.
    fn move_waiter(&mut self, owner: Owner, known: &[Known]) {
        let Some(known) = known.first().filter(|known| known.version.is_some()) else { return };
        let lease = self.data.entries.entry(owner).filter(|entry| entry.tie.lease != known.lease).map(Entry::lease);
        if let Some(lease) = lease.filter(|_| self.is_unchanged(known)) {
            self.put(&lease, known);
        }
    }

    /// Whether an entry would have to be written with a lease that has ended, or whose key is taken.
    fn is_lease_missing(&self, claim: &Claim, known: &[Known]) -> bool {
        let lasts = |known: &Known| self.data.leases.contains_key(&known.lease) && self.at_key(known.lease).is_none();
        self.data.entries.entry(claim.owner).is_none() && !known.first().is_some_and(lasts)
    }

    /// Who has no entry yet creates one, if it waits for its turn or has it at once.
    fn acquire(&mut self, conn: ConnId, claim: &Claim, seat: Seat, known: &[Known]) -> Result<Answer, Refused> {
        let (name, at) = (&claim.name, Self::at(conn));
        if self.data.entries.entry(claim.owner).is_none() {
            if self.data.buried.contains_key(&claim.owner) {
                return Err(Refused::GivenUp);
            }
            if seat == Seat::Unwanted && !self.data.entries.is_free_for(name, claim.terms.mode) {
                return self.members[at].replica.busy(claim);
            }
            let lease = known.first().map(|known| known.lease);
            self.create(claim, lease.ok_or(Refused::GivenUp)?)?;
            self.catch_up(at);
        }
        let replica = &mut self.members[at].replica;
        match replica.judge(claim, place_for(claim.terms.ttl))? {
            Judged::Holds(answer) => Ok(answer),
            Judged::Waits { .. } if seat == Seat::Unwanted => {
                self.data.delete(|entry| entry.owner() == claim.owner);
                replica.busy(claim)
            }
            Judged::Waits { answer, waits, watched } => {
                if let Seat::Told(inbox) = seat {
                    replica.watch(Watch { conn, inbox, name: name.clone(), waits, watched });
                }
                Ok(answer)
            }
        }
    }

    fn create(&mut self, claim: &Claim, lease: LeaseId) -> Result<(), Refused> {
        let tokens = self.data.draw(claim.width)?;
        self.data.create(claim, tokens, lease);
        if !self.keys.insert(lease) {
            self.faults.push(Fault::KeyReused);
        }
        self.granted.extend(self.data.entries.entry(claim.owner).map(Entry::lease));
        Ok(())
    }

    /// Whether the entry of a key is as it is known to be.
    fn is_unchanged(&mut self, known: &Known) -> bool {
        let Some(tie) = self.at_key(known.key).map(|entry| entry.tie) else { return false };
        let version = known.version.unwrap_or(tie.version);
        let is_same = tie.version == version;
        if !is_same {
            self.faults.push(Fault::ChangedMeanwhile);
        }
        is_same || self.mistake == Some(Mistake::CreationCompared) && tie.version.created == version.created
    }

    /// Tells which entries are there, and writes into those of holders that they hold, with the leases that they are to end with.
    fn renew(&mut self, leases: &[Lease], known: &[Known]) -> Option<Vec<Renewed>> {
        if !known.iter().all(|known| self.is_unchanged(known)) {
            return None;
        }
        for (lease, known) in leases.iter().zip(known) {
            self.put(lease, known);
            let entry = self.data.entries.find_mut(|entry| entry.tie.key == known.key);
            entry.into_iter().for_each(|entry| entry.tie.is_marked = true);
        }
        Some(leases.iter().map(|lease| self.renewed(lease)).collect())
    }

    fn put(&mut self, lease: &Lease, known: &Known) {
        let modified = self.data.revision + 1;
        let has_lease = self.data.leases.contains_key(&known.lease);
        let Some(entry) = self.data.entries.find_mut(|entry| entry.tie.key == known.key).filter(|_| has_lease) else {
            return;
        };
        if known.is_marked && entry.tie.lease == known.lease {
            return;
        }
        self.faults.extend((entry.tie.lease != known.lease).then_some(Fault::MovedToOwnLease));
        entry.put(lease);
        (entry.tie.lease, entry.tie.version.modified) = (known.lease, modified);
        self.data.revision = modified;
    }

    fn renewed(&self, lease: &Lease) -> Renewed {
        if self.data.entries.entry(lease.owner).is_none_or(|entry| entry.lease() != *lease) {
            return Renewed::NotHeld;
        }
        let is_shared = lease.terms.mode != Mode::Exclusive;
        Renewed::Renewed {
            valid_for: lease.terms.ttl.get(),
            wanted: is_shared && self.data.entries.is_wanted(&lease.name),
        }
    }

    /// `None` if the entry has changed.
    fn release(&mut self, now: Moment, request: &ReleaseRequest, known: &[Known]) -> Option<Released> {
        if request.certainty == Certainty::Unknown {
            let lease = self.grant(now, Data::refuses_for(request.terms.ttl));
            self.data.buried.insert(request.owner, lease);
        }
        let own = self.data.known(request.owner);
        // It deletes what it has read, under the key that it knows or finds.
        let Some(known) = known.first().copied().filter(|known| self.at_key(known.key).is_some()).or(own) else {
            return Some(self.release_kept(request));
        };
        if !self.is_unchanged(&known) {
            return if own.is_some() { None } else { Some(self.release_kept(request)) };
        }
        let owner = self.at_key(known.key).map_or(request.owner, Entry::owner);
        Some(self.delete_or_keep(now, request, owner))
    }

    fn delete_or_keep(&mut self, now: Moment, request: &ReleaseRequest, owner: Owner) -> Released {
        let entries = &self.data.entries;
        let turn = entries.entry(owner).and_then(|own| entries.turn(own.name(), own.key()));
        match request.keep.filter(|_| turn == Some(Turn::Holds)) {
            Some(time) => {
                let (lease, modified) = (self.grant(now, time), self.data.revision + 1);
                let entry = self.data.entries.find_mut(|entry| entry.owner() == owner);
                entry.into_iter().for_each(|entry| {
                    entry.keep();
                    (entry.tie.lease, entry.tie.version.modified) = (lease, modified);
                });
                self.data.revision = modified;
            }
            None => self.data.delete(|entry| entry.owner() == owner),
        }
        Turn::released(turn.as_ref())
    }

    /// Frees the lock that was kept for an owner, or goes on keeping it.
    fn release_kept(&mut self, request: &ReleaseRequest) -> Released {
        let kept = request.owner.kept();
        if self.data.entries.entry(kept).is_none() {
            return Released::NotHeld;
        }
        if request.keep.is_none() {
            self.data.delete(|entry| entry.owner() == kept);
        }
        Released::Released
    }

    fn revoke(&mut self, name: &LockName, token: FencingToken) -> Revoked {
        let Some(owner) = self.data.entries.holder_with(name, token) else { return Revoked::NotHeld };
        self.data.delete(|entry| entry.owner() == owner);
        Revoked::Revoked
    }
}
