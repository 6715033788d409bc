//! One lock of the file during one request, as the rules see it.
//!
//! The row in `locks` is the lease of a lock that one owner holds alone. Of a lock that several hold, it stands for all of
//! them: it has a reserved owner (see `modes`) and the end of the last lease, and the leases are in `holds`.

use lock_core::limit::Record;
use lock_core::{Claim, FencingToken, LockName, Mode, Moment, Note, Owner, Slots};
use lock_rules::{Changes, Hold, Rows, Standing, Write};
use rusqlite::named_params;

use crate::error::{BACKEND, Fault};
use crate::modes::{kind, owner_of_several};
use crate::timing::wall_micros;
use crate::transaction::Transaction;
use crate::wire::{self, LockRow, nanos, signed, size, unsigned};

/// A waiter is not notified by others: its client polls.
type Place = lock_rules::Place<()>;

pub(crate) struct SqliteRows<'a> {
    transaction: &'a Transaction<'a>,
    key: String,
    /// The row in `locks`, once it was read; `None` if there is none.
    lock: Option<Option<LockRow>>,
}

impl<'a> SqliteRows<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, name: &LockName) -> Self {
        Self { transaction, key: transaction.key(name), lock: None }
    }

    /// The row of the lock, under the limit that was set: a program that does not know that may have been the first to hold.
    pub(crate) fn lock(&mut self) -> Result<Option<&LockRow>, Fault> {
        if self.lock.is_none() {
            let mut row = self.transaction.live(wire::LOCK, &self.key, LockRow::read)?;
            if let Some(LockRow { mode: mode @ Mode::Permits { .. }, .. }) = &mut row
                && let Some(record) = self.limit()?
            {
                *mode = mode.under(record.limit());
            }
            self.lock = Some(row);
        }
        Ok(self.lock.as_ref().and_then(Option::as_ref))
    }

    /// An older program hands the lock over to a place as an exclusive lease. Makes it what its owner asks for.
    pub(crate) fn adapt(&mut self, claim: &Claim) -> Result<(), Fault> {
        let mode = claim.terms.mode;
        let Some(own) = self.alone()?.filter(|hold| hold.owner == claim.owner && mode != Mode::Exclusive) else {
            return Ok(());
        };
        let hold = Hold { mode, slots: Slots::new(0..mode.count()), ..own.clone() };
        let standing = Some(Standing { mode, permits: mode.count() });
        self.write(Changes { writes: vec![Write::Hold(hold)], standing, notices: Vec::new() })?;
        self.lock = None;
        Ok(())
    }

    /// How several hold the lock.
    fn several(&mut self) -> Result<Option<Mode>, Fault> {
        Ok(self.lock()?.map(|row| row.mode).filter(|mode| *mode != Mode::Exclusive))
    }

    /// The lease that holds the lock alone.
    fn alone(&mut self) -> Result<Option<&Hold>, Fault> {
        Ok(self.lock()?.filter(|row| row.mode == Mode::Exclusive).map(|row| &row.last))
    }

    /// All of several leases, the one that ends last first.
    fn all(&mut self) -> Result<Vec<Hold>, Fault> {
        match self.several()? {
            Some(mode) => self.transaction.all_live(wire::HOLDS, &self.key, |row| wire::hold(row, mode)),
            None => Ok(self.alone()?.cloned().into_iter().collect()),
        }
    }
}

impl Rows for SqliteRows<'_> {
    const BACKEND: &'static str = BACKEND;
    type Client = ();
    type Error = Fault;

    fn now(&self) -> Moment {
        self.transaction.now
    }

    fn standing(&mut self) -> Result<Option<Standing>, Fault> {
        let Some(mode) = self.lock()?.map(|row| row.mode) else { return Ok(None) };
        let permits = match mode {
            Mode::Permits { .. } => self.transaction.live(wire::PERMITS, &self.key, |row| row.get(0))?.unwrap_or(0),
            Mode::Exclusive | Mode::Shared | _ => 0,
        };
        Ok(Some(Standing { mode, permits }))
    }

    fn hold(&mut self, owner: Owner) -> Result<Option<Hold>, Fault> {
        let Some(mode) = self.several()? else { return Ok(self.alone()?.filter(|hold| hold.owner == owner).cloned()) };
        let living =
            named_params! { ":name": self.key, ":owner": owner.to_wire(), ":now": nanos(self.transaction.now) };
        self.transaction.one(wire::HOLD, living, |row| wire::hold(row, mode))
    }

    fn hold_with(&mut self, token: FencingToken) -> Result<Option<Hold>, Fault> {
        let spans = |hold: &&Hold| (hold.tokens.low()..=hold.tokens.high()).contains(&token);
        let Some(mode) = self.several()? else { return Ok(self.alone()?.filter(spans).cloned()) };
        let living =
            named_params! { ":name": self.key, ":token": i64::from(token), ":now": nanos(self.transaction.now) };
        self.transaction.one(wire::HOLD_WITH, living, |row| wire::hold(row, mode))
    }

    fn last_hold(&mut self, except: Option<Owner>) -> Result<Option<Hold>, Fault> {
        let is_other = |hold: &&Hold| Some(hold.owner) != except;
        let Some(mode) = self.several()? else { return Ok(self.alone()?.filter(is_other).cloned()) };
        let except = except.map(|owner| owner.to_wire()).unwrap_or_default();
        let living = named_params! { ":name": self.key, ":except": except, ":now": nanos(self.transaction.now) };
        self.transaction.one(wire::LAST_HOLD, living, |row| wire::hold(row, mode))
    }

    fn first_ends(&mut self, permits: u32) -> Result<Vec<(Moment, u32)>, Fault> {
        let mut missing = permits;
        let ends = self.all()?.into_iter().rev().map(|hold| (hold.until, hold.mode.count()));
        let is_needed = |(_, permits): &(Moment, u32)| {
            let is_needed = missing > 0;
            missing = missing.saturating_sub(*permits);
            is_needed
        };
        Ok(ends.take_while(is_needed).collect())
    }

    fn free_slots(&mut self, count: u32) -> Result<Vec<u32>, Fault> {
        let mut taken: Vec<u32> = self.all()?.iter().flat_map(|hold| hold.slots.get().to_vec()).collect();
        taken.sort_unstable();
        Ok((0..).filter(|slot| taken.binary_search(slot).is_err()).take(size(count)).collect())
    }

    fn place(&mut self, owner: Owner) -> Result<Option<Place>, Fault> {
        let living =
            named_params! { ":name": self.key, ":owner": owner.to_wire(), ":now": nanos(self.transaction.now) };
        self.transaction.one(wire::PLACE, living, wire::place)
    }

    fn next_place(&mut self, number: u64) -> Result<Option<Place>, Fault> {
        let living =
            named_params! { ":name": self.key, ":number": signed(number), ":now": nanos(self.transaction.now) };
        self.transaction.one(wire::NEXT_PLACE, living, wire::place)
    }

    fn places_before(&mut self, number: u64, most: u32) -> Result<u32, Fault> {
        let before = named_params! {
            ":name": self.key, ":number": signed(number), ":now": nanos(self.transaction.now), ":most": most,
        };
        Ok(self.transaction.one(wire::PLACES_BEFORE, before, |row| row.get(0))?.unwrap_or(0))
    }

    fn last_number(&mut self) -> Result<u64, Fault> {
        let name = named_params! { ":name": self.key };
        Ok(self.transaction.one(wire::LAST_NUMBER, name, |row| row.get(0))?.map_or(0, unsigned))
    }

    fn queued_above(&mut self, permits: u32) -> Result<Vec<Place>, Fault> {
        let living = named_params! { ":name": self.key, ":permits": permits, ":now": nanos(self.transaction.now) };
        self.transaction.all(wire::QUEUED_ABOVE, living, wire::place)
    }

    fn is_given_up(&mut self, owner: Owner) -> Result<bool, Fault> {
        let living =
            named_params! { ":name": self.key, ":owner": owner.to_wire(), ":now": nanos(self.transaction.now) };
        Ok(self.transaction.one(wire::TOMBSTONE, living, |_| Ok(()))?.is_some())
    }

    fn limit(&mut self) -> Result<Option<Record>, Fault> {
        self.transaction.live(wire::RECORD, &self.key, wire::record)
    }

    /// Above every token that was drawn from a file that this one replaced: that file drew at most one a microsecond.
    fn last_token(&mut self) -> Result<u64, Fault> {
        let last = self.transaction.one(wire::LAST_TOKEN, (), |row| row.get(0))?.map_or(0, unsigned);
        Ok(last.max(wall_micros()))
    }

    fn revoked_by(&mut self, highest: FencingToken) -> Result<Option<Note>, Fault> {
        self.transaction.revoked_by(&self.key, highest)
    }

    fn holds(&mut self, most: usize) -> Result<(Vec<Hold>, u32), Fault> {
        let mut holds = self.all()?;
        let count = u32::try_from(holds.len()).unwrap_or(u32::MAX);
        holds.truncate(most);
        Ok((holds, count))
    }

    fn waiting(&mut self, most: usize) -> Result<(Vec<Mode>, u32), Fault> {
        let count = self.transaction.live(wire::WAITERS, &self.key, |row| row.get(0))?.map_or(0, wire::count);
        if count == 0 {
            return Ok((Vec::new(), 0));
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let first = named_params! { ":name": self.key, ":now": nanos(self.transaction.now), ":most": most };
        Ok((self.transaction.all(wire::PLACES, first, |row| Ok(wire::place(row)?.terms.mode))?, count))
    }

    fn write(&mut self, changes: Changes<()>) -> Result<(), Fault> {
        let will = changes.standing.map(|standing| standing.mode);
        let several = will.filter(|mode| *mode != Mode::Exclusive);
        if several.is_some() && several.map(Mode::kind) != self.several()?.map(Mode::kind) {
            // Their lock may have been ended by a program that does not know them.
            self.transaction.run(wire::CLEAR_HOLDS, named_params! { ":name": self.key })?;
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
}

impl SqliteRows<'_> {
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
            Write::End(owner) => run(wire::END_HOLD, named_params! { ":name": name, ":owner": owner.to_wire() }),
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

    fn set_hold(&self, hold: &Hold) -> Result<(), Fault> {
        self.transaction.sweep(&self.key)?;
        if hold.mode == Mode::Exclusive {
            return self.set_lock(&hold.owner.to_wire(), hold);
        }
        self.transaction.run(
            wire::SET_HOLD,
            named_params! {
                ":name": self.key, ":owner": hold.owner.to_wire(), ":slots": hold.slots.to_string(),
                ":low": i64::from(hold.tokens.low()), ":high": i64::from(hold.tokens.high()),
                ":note": wire::stamped(hold), ":boot": self.transaction.boot(),
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
                ":note": wire::stamped(hold), ":boot": self.transaction.boot(),
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

    fn set_place(&self, place: &Place) -> Result<(), Fault> {
        let (name, now) = (&self.key, nanos(self.transaction.now));
        self.transaction.run(wire::DROP_DEAD_PLACES, named_params! { ":name": name, ":now": now })?;
        self.transaction.run(
            wire::SET_PLACE,
            named_params! {
                ":name": name, ":place": signed(place.number), ":owner": place.owner.to_wire(),
                ":ttl": signed(place.terms.ttl.as_millis()), ":width": signed(place.width.get()),
                ":kind": kind(place.terms.mode), ":note": place.note.to_wire(), ":boot": self.transaction.boot(),
                ":until": nanos(place.until),
            },
        )?;
        Ok(())
    }
}
