//! The server: the rows of all locks, read by one load and written by one commit. In a database, a load is one statement, and a commit is a
//! transaction or a function.

#[cfg(test)]
mod costs;
#[cfg(test)]
mod pairs;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_core::limit::Record;
use lock_core::{FencingToken, Listeners, LockName, Moment, Note, Owner, StoreEvent, latch};
use lock_host::SharedClock;
use lock_rules::window::{Commit, Committed, Compared, EXPIRED_MAX, LatchCommit, LatchWindow, Needs, OfOwner, Window};
use lock_rules::{Hold, Notice, Place, Write, ends_of};

use crate::latches::Latches;

/// A client of the server, to whom it pushes events.
pub(crate) type ClientId = u64;

/// All rows, and the clients that listen.
pub(crate) struct Server {
    clock: SharedClock,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    locks: HashMap<LockName, Lock>,
    latches: Latches,
    listeners: HashMap<ClientId, Arc<Listeners>>,
    clients: ClientId,
}

/// The rows of one lock. They stay when the lock is free, so its counters never fall.
#[derive(Clone, Default)]
struct Lock {
    version: u64,
    tail: u64,
    last_token: u64,
    permits: u32,
    limit: Option<(Record, Moment)>,
    holds: HashMap<Owner, Hold>,
    places: BTreeMap<u64, Place<ClientId>>,
    given_up: HashMap<Owner, Moment>,
    revoked: BTreeMap<FencingToken, (Note, Moment)>,
}

impl Server {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { clock, tables: Mutex::default() }
    }

    /// A new client, and its way to receive events.
    pub(crate) fn connect(&self) -> (ClientId, Arc<Listeners>) {
        let mut tables = self.tables();
        tables.clients += 1;
        let (client, listeners) = (tables.clients, Arc::new(Listeners::default()));
        tables.listeners.insert(client, Arc::clone(&listeners));
        (client, listeners)
    }

    pub(crate) fn disconnect(&self, client: ClientId) {
        let listeners = self.tables().listeners.remove(&client);
        // Outside of the mutex: what a listener owns may be a client of this server.
        drop(listeners);
    }

    pub(crate) fn load(&self, name: &LockName, needs: Needs) -> Window<ClientId> {
        let mut tables = self.tables();
        let now = self.clock.now();
        tables.locks.entry(name.clone()).or_default().load(now, needs)
    }

    pub(crate) fn commit(&self, name: &LockName, commit: Commit<ClientId>) -> Committed {
        let mut tables = self.tables();
        let now = self.clock.now();
        let lock = tables.locks.entry(name.clone()).or_default();
        if !lock.is_as_loaded(now, &commit) {
            return Committed::Conflict;
        }
        let Commit { writes, notices, permits, .. } = commit;
        writes.into_iter().for_each(|write| lock.write(write));
        if let Some(permits) = permits {
            lock.version += 1;
            lock.permits = permits;
        }
        let deliveries = tables.deliveries(notices);
        drop(tables);
        deliveries.into_iter().for_each(|(listeners, event)| listeners.deliver(&event));
        Committed::Written
    }

    pub(crate) fn load_latch(&self, request: &latch::Request) -> LatchWindow {
        let tables = self.tables();
        tables.latches.load(self.clock.now(), request)
    }

    pub(crate) fn commit_latch(&self, name: &LockName, commit: LatchCommit) -> Committed {
        let mut tables = self.tables();
        tables.latches.commit(self.clock.now(), name, commit)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn deliveries(&self, notices: Vec<Notice<ClientId>>) -> Vec<(Arc<Listeners>, StoreEvent)> {
        let notices = notices.into_iter();
        notices.filter_map(|Notice { client, event }| Some((Arc::clone(self.listeners.get(&client)?), event))).collect()
    }
}

impl Lock {
    fn load(&self, now: Moment, needs: Needs) -> Window<ClientId> {
        let (mut living, mut expired): (Vec<&Hold>, Vec<&Hold>) =
            self.holds.values().partition(|hold| now < hold.until);
        living.sort_unstable_by_key(|hold| (hold.until, hold.owner));
        expired.sort_unstable_by_key(|hold| (hold.until, hold.owner));
        expired.truncate(EXPIRED_MAX);
        let places = || self.places.values().filter(|place| now < place.until);
        let above = needs.above.map(|permits| places().filter(move |place| place.terms.mode.count() > permits));
        let first_ends = living.iter().map(|hold| (hold.until, hold.mode.count()));
        Window {
            now,
            version: self.version,
            tail: self.tail,
            last_token: self.last_token,
            limit: self.limit.as_ref().filter(|(_, until)| now < *until).map(|(record, _)| record.clone()),
            permits: self.permits,
            expired: expired.into_iter().cloned().collect(),
            last: living.iter().rev().take(2).copied().cloned().collect(),
            first_ends: ends_of(needs.ends, first_ends),
            free_slots: self.free_slots(needs.slots),
            owners: needs.owners.iter().map(|owner| self.of(now, *owner)).collect(),
            with_token: needs
                .token
                .and_then(|token| living.into_iter().find(|hold| hold.tokens.contains(token)).cloned()),
            revoked_by: needs.token.and_then(|token| self.revoked_by(now, token)),
            above: above.into_iter().flatten().cloned().collect(),
            places: places().zip(0..needs.places).map(|(place, _)| place.clone()).collect(),
            numbers: places().zip(0..needs.numbers).map(|(place, _)| place.number).collect(),
            needs,
        }
    }

    fn of(&self, now: Moment, owner: Owner) -> OfOwner<ClientId> {
        let hold = self.holds.get(&owner).filter(|hold| now < hold.until).cloned();
        let place = self.places.values().find(|place| place.owner == owner && now < place.until).cloned();
        let is_given_up = self.given_up.get(&owner).is_some_and(|until| now < *until);
        OfOwner { owner, hold, place, is_given_up }
    }

    fn free_slots(&self, count: u32) -> Vec<u32> {
        let taken: HashSet<u32> = self.holds.values().flat_map(|hold| hold.slots.get()).copied().collect();
        (0..).filter(|slot| !taken.contains(slot)).zip(0..count).map(|(slot, _)| slot).collect()
    }

    fn revoked_by(&self, now: Moment, highest: FencingToken) -> Option<Note> {
        self.revoked.get(&highest).filter(|(_, until)| now < *until).map(|(by, _)| by.clone())
    }

    /// Whether what the commit depends on is as it was loaded.
    fn is_as_loaded(&self, now: Moment, commit: &Commit<ClientId>) -> bool {
        commit.version.is_none_or(|version| version == self.version)
            && commit.tail.is_none_or(|tail| tail == self.tail)
            && commit.leases.iter().all(|lease| self.holds.get(&lease.owner).map(Compared::from) == Some(*lease))
            && commit.before.is_none_or(|before| now < before)
    }

    fn write(&mut self, write: Write<ClientId>) {
        match write {
            Write::Hold(hold) => _ = self.holds.insert(hold.owner, hold),
            Write::Extend(owner, until) => {
                self.holds.entry(owner).and_modify(|hold| hold.until = until);
            }
            Write::End(owner) => _ = self.holds.remove(&owner),
            Write::Place(place) => {
                self.leave(place.owner);
                self.tail = self.tail.max(place.number);
                let other = self.places.insert(place.number, place);
                debug_assert!(other.is_none(), "two waiters have one number");
            }
            Write::Leave(owner) => self.leave(owner),
            Write::Tombstone(owner, until) => {
                let present = self.given_up.entry(owner).or_insert(until);
                *present = until.max(*present);
            }
            Write::Limit(record, until) => self.set_limit(record, until),
            Write::Revocation(highest, by, until) => _ = self.revoked.insert(highest, (by, until)),
            Write::LastToken(last) => self.last_token = last,
        }
    }

    fn leave(&mut self, owner: Owner) {
        self.places.retain(|_, place| place.owner != owner);
    }

    fn set_limit(&mut self, record: Record, until: Moment) {
        let limit = record.limit();
        self.holds.values_mut().for_each(|hold| hold.mode = hold.mode.under(limit));
        self.places.values_mut().for_each(|place| place.terms.mode = place.terms.mode.under(limit));
        self.limit = Some((record, until));
    }
}
