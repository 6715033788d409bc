//! How many permits the leases of a semaphore have, and which slots, so that no request reads all leases.
//!
//! A table says it of all rows of `holds`, whether these have expired or not. This program changes it together with the rows. For a
//! program that does not know it, triggers do: see `permits.sql`. This program's connections fire no triggers (see `session`), because a
//! reader's lease would pay for triggers that do nothing.

use lock_core::Slots;
use rusqlite::named_params;

use crate::error::Fault;
use crate::transaction::Transaction;
use crate::wire::{self, nanos};

mod sql {
    pub(super) const SLOTS_OF: &str = "SELECT slots FROM holds WHERE name = :name AND owner = :owner";
    pub(super) const EXPIRED: &str = "SELECT owner, slots FROM holds
        WHERE name = :name AND expires_ns <= :now AND slots <> ''";
    pub(super) const ADD: &str = "INSERT INTO permits(name, kind, slot, value) VALUES (:name, 0, 0, :permits)
        ON CONFLICT DO UPDATE SET value = value + excluded.value";
    pub(super) const SUBTRACT: &str = "UPDATE permits SET value = value - :permits
        WHERE name = :name AND kind = 0 AND slot = 0";
    pub(super) const SUBTRACT_LAST: &str = "DELETE FROM permits
        WHERE name = :name AND kind = 0 AND slot = 0 AND value = :permits";
    pub(super) const TAKE: &str = "INSERT OR REPLACE INTO permits(name, kind, slot, value)
        VALUES (:name, 1, :slot, :owner)";
    /// An owner that has taken it meanwhile keeps it.
    pub(super) const RETURN: &str = "DELETE FROM permits
        WHERE name = :name AND kind = 1 AND slot = :slot AND value = :owner";
    pub(super) const IS_TAKEN: &str = "SELECT 1 FROM permits WHERE name = :name AND kind = 1 AND slot = :slot";
    pub(super) const NEXT_IS_FREE: &str = "INSERT OR REPLACE INTO permits(name, kind, slot, value)
        VALUES (:name, 2, :slot, '')";
    pub(super) const NEXT_IS_TAKEN: &str = "DELETE FROM permits WHERE name = :name AND kind = 2 AND slot = :slot";
    pub(super) const CLEAR: &str = "DELETE FROM permits WHERE name = :name";
}

impl Transaction<'_> {
    /// An owner is about to have a lease with these slots. A lease that is granted again keeps its slots.
    pub(crate) fn take_slots(&self, key: &str, owner: &str, slots: &Slots) -> Result<(), Fault> {
        if self.slots_of(key, owner)?.is_some() {
            return Ok(());
        }
        self.run(sql::ADD, named_params! { ":name": key, ":permits": count(slots) })?;
        slots.get().iter().try_for_each(|slot| self.take(key, owner, *slot))
    }

    fn take(&self, key: &str, owner: &str, slot: u32) -> Result<(), Fault> {
        self.run(sql::TAKE, named_params! { ":name": key, ":slot": slot, ":owner": owner })?;
        if !self.is_taken(key, slot.saturating_add(1))? {
            self.mark(sql::NEXT_IS_FREE, key, slot)?;
        }
        match slot.checked_sub(1) {
            Some(before) => self.mark(sql::NEXT_IS_TAKEN, key, before),
            None => Ok(()),
        }
    }

    /// The lease of this owner is about to end.
    pub(crate) fn return_slots(&self, key: &str, owner: &str) -> Result<(), Fault> {
        self.slots_of(key, owner)?.map_or(Ok(()), |slots| self.return_these(key, owner, &slots))
    }

    /// The expired leases of a lock are about to be removed.
    pub(crate) fn return_expired(&self, key: &str) -> Result<(), Fault> {
        let expired = named_params! { ":name": key, ":now": nanos(self.now) };
        let expired = self.all(sql::EXPIRED, expired, |row| Ok((row.get::<_, String>(0)?, wire::slots(row, 1)?)))?;
        expired.iter().try_for_each(|(owner, slots)| self.return_these(key, owner, slots))
    }

    /// All leases of a lock are about to be removed.
    pub(crate) fn return_all(&self, key: &str) -> Result<(), Fault> {
        self.run(sql::CLEAR, named_params! { ":name": key }).map(drop)
    }

    fn slots_of(&self, key: &str, owner: &str) -> Result<Option<Slots>, Fault> {
        let lease = named_params! { ":name": key, ":owner": owner };
        Ok(self.one(sql::SLOTS_OF, lease, |row| wire::slots(row, 0))?.filter(|slots| !slots.get().is_empty()))
    }

    /// A lease with these slots is about to be removed.
    pub(crate) fn return_these(&self, key: &str, owner: &str, slots: &Slots) -> Result<(), Fault> {
        let permits = named_params! { ":name": key, ":permits": count(slots) };
        if self.run(sql::SUBTRACT_LAST, permits)? == 0 {
            self.run(sql::SUBTRACT, permits)?;
        }
        slots.get().iter().try_for_each(|slot| self.give_back(key, owner, *slot))
    }

    fn give_back(&self, key: &str, owner: &str, slot: u32) -> Result<(), Fault> {
        if self.run(sql::RETURN, named_params! { ":name": key, ":slot": slot, ":owner": owner })? == 0 {
            return Ok(());
        }
        self.mark(sql::NEXT_IS_TAKEN, key, slot)?;
        match slot.checked_sub(1) {
            Some(before) if self.is_taken(key, before)? => self.mark(sql::NEXT_IS_FREE, key, before),
            Some(_) | None => Ok(()),
        }
    }

    fn is_taken(&self, key: &str, slot: u32) -> Result<bool, Fault> {
        let slot = named_params! { ":name": key, ":slot": slot };
        Ok(self.one(sql::IS_TAKEN, slot, |_| Ok(()))?.is_some())
    }

    /// Marks whether the slot after this one is free. A slot that is free itself has no mark.
    fn mark(&self, sql: &str, key: &str, slot: u32) -> Result<(), Fault> {
        self.run(sql, named_params! { ":name": key, ":slot": slot }).map(drop)
    }
}

fn count(slots: &Slots) -> u32 {
    u32::try_from(slots.get().len()).unwrap_or(u32::MAX)
}
