//! One lock of the store during one request, as the rules see it.

use std::convert::Infallible;

use lock_core::limit::Record;
use lock_core::{FencingToken, LockName, Moment, Note, Owner};
use lock_rules::{Changes, Hold, Notice, Rows, Standing, Write};

use crate::BACKEND;
use crate::lock::Lock;
use crate::notice::{ClientId, Place};
use crate::revocations::Revocations;

/// A lock without anything that has expired, and what all locks share.
pub(crate) struct MemoryRows<'a> {
    pub(crate) now: Moment,
    pub(crate) name: &'a LockName,
    pub(crate) lock: &'a mut Lock,
    pub(crate) last_token: &'a mut u64,
    pub(crate) revocations: &'a mut Revocations,
    pub(crate) notices: &'a mut Vec<Notice<ClientId>>,
}

impl Rows for MemoryRows<'_> {
    const BACKEND: &'static str = BACKEND;
    type Client = ClientId;
    type Error = Infallible;

    fn now(&self) -> Moment {
        self.now
    }

    fn standing(&mut self) -> Result<Option<Standing>, Infallible> {
        Ok(self.lock.holds.standing())
    }

    fn hold(&mut self, owner: Owner) -> Result<Option<Hold>, Infallible> {
        Ok(self.lock.holds.get(owner).cloned())
    }

    fn hold_with(&mut self, token: FencingToken) -> Result<Option<Hold>, Infallible> {
        Ok(self.lock.holds.with(token).cloned())
    }

    fn last_hold(&mut self, except: Option<Owner>) -> Result<Option<Hold>, Infallible> {
        Ok(self.lock.holds.living(self.now).find(|hold| Some(hold.owner) != except).cloned())
    }

    fn first_ends(&mut self, permits: u32) -> Result<Vec<(Moment, u32)>, Infallible> {
        Ok(self.lock.holds.first_ends(permits))
    }

    fn free_slots(&mut self, count: u32) -> Result<Vec<u32>, Infallible> {
        Ok(self.lock.holds.free_slots(count))
    }

    fn place(&mut self, owner: Owner) -> Result<Option<Place>, Infallible> {
        Ok(self.lock.queue.get(owner).cloned())
    }

    fn next_place(&mut self, number: u64) -> Result<Option<Place>, Infallible> {
        Ok(self.lock.queue.after(number).next().cloned())
    }

    fn places_before(&mut self, number: u64, most: u32) -> Result<u32, Infallible> {
        Ok(self.lock.queue.before(number, most))
    }

    fn last_number(&mut self) -> Result<u64, Infallible> {
        Ok(self.lock.queue.last_number())
    }

    fn queued_above(&mut self, permits: u32) -> Result<Vec<Place>, Infallible> {
        Ok(self.lock.queue.after(0).filter(|place| place.terms.mode.count() > permits).cloned().collect())
    }

    fn is_given_up(&mut self, owner: Owner) -> Result<bool, Infallible> {
        Ok(self.lock.tombstones.contains(owner))
    }

    fn limit(&mut self) -> Result<Option<Record>, Infallible> {
        Ok(self.lock.limit.as_ref().map(|(record, _)| record.clone()))
    }

    fn last_token(&mut self) -> Result<u64, Infallible> {
        Ok(*self.last_token)
    }

    fn revoked_by(&mut self, highest: FencingToken) -> Result<Option<Note>, Infallible> {
        Ok(self.revocations.by(self.now, self.name, highest))
    }

    fn write(&mut self, changes: Changes<ClientId>) -> Result<(), Infallible> {
        changes.writes.into_iter().for_each(|write| self.write_one(write));
        self.notices.extend(changes.notices);
        Ok(())
    }
}

impl MemoryRows<'_> {
    fn write_one(&mut self, write: Write<ClientId>) {
        let lock = &mut *self.lock;
        match write {
            Write::Hold(hold) => lock.holds.set(hold),
            Write::Extend(owner, until) => lock.holds.extend(owner, until),
            Write::End(owner) => lock.holds.remove(owner),
            Write::Place(place) => lock.queue.set(place),
            Write::Leave(owner) => lock.queue.leave(owner),
            Write::Tombstone(owner, until) => lock.tombstones.add(owner, until),
            Write::Limit(record, until) => {
                lock.holds.set_limit(record.limit());
                lock.queue.set_limit(record.limit());
                lock.limit = Some((record, until));
            }
            Write::Revocation(highest, by, until) => self.revocations.remember(self.now, self.name, highest, by, until),
            Write::LastToken(last) => *self.last_token = last,
        }
    }
}
