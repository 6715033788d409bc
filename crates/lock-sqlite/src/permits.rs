//! How many permits the leases of a semaphore have, and which slots, so that no request reads all leases.
//!
//! The tables say it of all rows of `holds`, whether these have expired or not. This program changes them together with the rows. For a
//! program that does not know them, triggers do: see `permits.sql`. This program's connections fire no triggers (see `session`), because a
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
    pub(super) const ADD: &str = "INSERT INTO permit_counts(name, permits) VALUES (:name, :permits)
        ON CONFLICT DO UPDATE SET permits = permits + excluded.permits";
    pub(super) const SUBTRACT: &str = "UPDATE permit_counts SET permits = permits - :permits WHERE name = :name";
    pub(super) const SUBTRACT_LAST: &str = "DELETE FROM permit_counts WHERE name = :name AND permits = :permits";
    pub(super) const TAKE: &str = "INSERT OR REPLACE INTO taken_slots(name, slot, owner, next_is_free)
        VALUES (:name, :slot, :owner, NOT EXISTS (SELECT 1 FROM taken_slots WHERE name = :name AND slot = :slot + 1))";
    pub(super) const TAKEN: &str = "UPDATE taken_slots SET next_is_free = 0 WHERE name = :name AND slot = :slot";
    /// An owner that has taken it meanwhile keeps it.
    pub(super) const RETURN: &str = "DELETE FROM taken_slots WHERE name = :name AND slot = :slot AND owner = :owner";
    pub(super) const RETURNED: &str = "UPDATE taken_slots SET next_is_free = 1 WHERE name = :name AND slot = :slot";
    pub(super) const CLEAR_PERMITS: &str = "DELETE FROM permit_counts WHERE name = :name";
    pub(super) const CLEAR_SLOTS: &str = "DELETE FROM taken_slots WHERE name = :name";
}

impl Transaction<'_> {
    /// An owner is about to have a lease with these slots. A lease that is granted again keeps its slots.
    pub(crate) fn take_slots(&self, key: &str, owner: &str, slots: &Slots) -> Result<(), Fault> {
        if self.slots_of(key, owner)?.is_some() {
            return Ok(());
        }
        self.run(sql::ADD, named_params! { ":name": key, ":permits": count(slots) })?;
        for slot in slots.get() {
            self.run(sql::TAKE, named_params! { ":name": key, ":slot": slot, ":owner": owner })?;
            self.mark_before(sql::TAKEN, key, *slot)?;
        }
        Ok(())
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
        self.run(sql::CLEAR_PERMITS, named_params! { ":name": key })?;
        self.run(sql::CLEAR_SLOTS, named_params! { ":name": key }).map(drop)
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
        for slot in slots.get() {
            if self.run(sql::RETURN, named_params! { ":name": key, ":slot": slot, ":owner": owner })? == 1 {
                self.mark_before(sql::RETURNED, key, *slot)?;
            }
        }
        Ok(())
    }

    /// Marks the slot before this one, if there is one.
    fn mark_before(&self, sql: &str, key: &str, slot: u32) -> Result<(), Fault> {
        let Some(before) = slot.checked_sub(1) else { return Ok(()) };
        self.run(sql, named_params! { ":name": key, ":slot": before }).map(drop)
    }
}

fn count(slots: &Slots) -> u32 {
    u32::try_from(slots.get().len()).unwrap_or(u32::MAX)
}
