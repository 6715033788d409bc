//! The changes that a request makes to one lock of the file.

use lock_core::{Claim, Mode, Owner, Slots};
use lock_rules::{Changes, Hold, Place, Standing, Write};
use rusqlite::named_params;

use crate::error::Fault;
use crate::modes::{kind, owner_of_several};
use crate::rows::SqliteRows;
use crate::transaction::Transaction;
use crate::wire::{self, nanos, signed};

impl SqliteRows<'_> {
    /// An older program hands the lock over to a place as an exclusive lease. Makes it what its owner asks for.
    pub(crate) fn adapt(&mut self, claim: &Claim) -> Result<(), Fault> {
        let mode = claim.terms.mode;
        let Some(own) = self.alone()?.filter(|hold| hold.owner == claim.owner && mode != Mode::Exclusive) else {
            return Ok(());
        };
        let hold = Hold { mode, slots: Slots::new(0..mode.count()), ..own.clone() };
        let standing = Some(Standing { mode, permits: mode.count() });
        self.write_all(Changes { writes: vec![Write::Hold(hold)], standing, notices: Vec::new() })?;
        self.lock = None;
        Ok(())
    }

    pub(crate) fn write_all(&mut self, changes: Changes<()>) -> Result<(), Fault> {
        let will = changes.standing.map(|standing| standing.mode);
        let several = will.filter(|mode| *mode != Mode::Exclusive);
        if several.is_some() && several.map(Mode::kind) != self.several()?.map(Mode::kind) {
            // Their lock may have been ended by a program that does not know them.
            let name = named_params! { ":name": self.key };
            if self.transaction.one(wire::ANY_HOLD, name, |_| Ok(()))?.is_some() {
                self.transaction.return_all(&self.key)?;
                self.transaction.run(wire::CLEAR_HOLDS, name)?;
            }
        }
        let concerns_lock =
            |write: &Write<()>| matches!(write, Write::Hold(_) | Write::Extend(..) | Write::End(_) | Write::Limit(..));
        let restates = changes.writes.iter().any(concerns_lock);
        changes.writes.into_iter().try_for_each(|write| self.write_one(write))?;
        match (will, several) {
            (None, _) if restates => {
                self.transaction.run(wire::CLEAR_LOCK, named_params! { ":name": self.key }).map(drop)
            }
            (_, Some(mode)) if restates => self.restate(mode),
            (_, _) => Ok(()),
        }
    }

    fn write_one(&mut self, write: Write<()>) -> Result<(), Fault> {
        let Transaction { now, .. } = *self.transaction;
        let (name, boot) = (&self.key, self.transaction.boot());
        let run = |sql: &str, params: &[(&str, &dyn rusqlite::ToSql)]| self.transaction.run(sql, params);
        match write {
            Write::Hold(hold) => return self.set_hold(&hold),
            Write::Extend(owner, until) => {
                let sql = if self.is_alone(owner) { wire::EXTEND_LOCK } else { wire::EXTEND_HOLD };
                run(sql, named_params! { ":name": name, ":owner": owner.to_wire(), ":until": nanos(until), ":now": nanos(now) })
            }
            Write::End(owner) if self.is_alone(owner) => Ok(0),
            Write::End(owner) => {
                let owner = owner.to_wire();
                if self.has_slots() {
                    self.transaction.return_slots(name, &owner)?;
                }
                run(wire::END_HOLD, named_params! { ":name": name, ":owner": owner })
            }
            Write::Place(place) => return self.set_place(&place),
            Write::Leave(owner) => run(wire::DROP_PLACE, named_params! { ":name": name, ":owner": owner.to_wire() }),
            Write::Tombstone(owner, until) => {
                let owner = owner.to_wire();
                run(wire::SET_TOMBSTONE, named_params! { ":name": name, ":owner": owner, ":boot": boot, ":until": nanos(until) })?;
                return self.transaction.sweep(name);
            }
            Write::Limit(record, until) => {
                run(wire::DROP_OLD_RECORDS, named_params! { ":now": nanos(now) })?;
                run(wire::LIMIT_PLACES, named_params! { ":name": name, ":limit": record.limit().get() })?;
                let record = record.to_string();
                run(wire::SET_RECORD, named_params! { ":name": name, ":record": record, ":boot": boot, ":until": nanos(until) })
            }
            Write::Revocation(highest, by, until) => {
                run(wire::DROP_OLD_REVOCATIONS, named_params! { ":now": nanos(now) })?;
                let (token, by) = (i64::from(highest), by.to_wire());
                run(
                    wire::SET_REVOCATION,
                    named_params! { ":name": name, ":token": token, ":note": by, ":boot": boot, ":until": nanos(until) },
                )
            }
            Write::LastToken(last) => run(wire::SET_LAST_TOKEN, named_params! { ":last": signed(last) }),
        }
        .map(drop)
    }

    /// Whether this owner has the lock alone. The row was read before anything is written.
    fn is_alone(&self, owner: Owner) -> bool {
        let row = self.lock.as_ref().and_then(Option::as_ref);
        row.is_some_and(|row| row.mode == Mode::Exclusive && row.last.owner == owner)
    }

    /// Whether the leases have slots.
    fn has_slots(&self) -> bool {
        let row = self.lock.as_ref().and_then(Option::as_ref);
        row.is_some_and(|row| matches!(row.mode, Mode::Permits { .. }))
    }

    fn set_hold(&self, hold: &Hold) -> Result<(), Fault> {
        self.transaction.sweep(&self.key)?;
        if hold.mode == Mode::Exclusive {
            return self.set_lock(&hold.owner.to_wire(), hold);
        }
        if matches!(hold.mode, Mode::Permits { .. }) {
            self.transaction.take_slots(&self.key, &hold.owner.to_wire(), &hold.slots)?;
        }
        self.transaction.run(
            wire::SET_HOLD,
            named_params! {
                ":name": self.key, ":owner": hold.owner.to_wire(), ":slots": hold.slots.to_string(),
                ":low": i64::from(hold.tokens.low()), ":high": i64::from(hold.tokens.high()),
                ":note": wire::stamped(&hold.note, hold.granted), ":boot": self.transaction.boot(),
                ":now": nanos(self.transaction.now), ":until": nanos(hold.until),
            },
        )?;
        Ok(())
    }

    fn set_lock(&self, owner: &str, hold: &Hold) -> Result<(), Fault> {
        self.transaction.run(
            wire::SET_LOCK,
            named_params! {
                ":name": self.key, ":owner": owner,
                ":low": i64::from(hold.tokens.low()), ":high": i64::from(hold.tokens.high()),
                ":note": wire::stamped(&hold.note, hold.granted), ":boot": self.transaction.boot(),
                ":now": nanos(self.transaction.now), ":until": nanos(hold.until),
            },
        )?;
        Ok(())
    }

    /// Lets the row of the lock say how several hold it, and for how long.
    fn restate(&self, mode: Mode) -> Result<(), Fault> {
        let living = named_params! { ":name": self.key, ":except": "", ":now": nanos(self.transaction.now) };
        let last = self.transaction.one(wire::LAST_HOLD, living, |row| wire::hold(row, mode))?;
        match last.zip(owner_of_several(mode)) {
            Some((last, owner)) => self.set_lock(&owner, &last),
            None => Ok(()),
        }
    }

    fn set_place(&self, place: &Place<()>) -> Result<(), Fault> {
        self.transaction.run(
            wire::SET_PLACE,
            named_params! {
                ":name": self.key, ":place": signed(place.number), ":owner": place.owner.to_wire(),
                ":ttl": signed(place.terms.ttl.as_millis()), ":width": signed(place.width.get()),
                ":kind": kind(place.terms.mode), ":note": wire::stamped(&place.note, place.joined), ":boot": self.transaction.boot(),
                ":until": nanos(place.until),
            },
        )?;
        Ok(())
    }
}
