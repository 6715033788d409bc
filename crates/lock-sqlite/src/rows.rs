//! One lock of the file during one request, as the rules see it.
//!
//! The row in `locks` is the lease of a lock that one owner holds alone. Of a lock that several hold, it stands for all of
//! them: it has a reserved owner (see `modes`) and the end of the last lease, and the leases are in `holds`.

use lock_core::inspect::Waiter;
use lock_core::limit::Record;
use lock_core::{FencingToken, LockName, Mode, Moment, Note, Owner};
use lock_rules::{Changes, Hold, Rows, Standing, ends_of};
use rusqlite::named_params;

use crate::error::{BACKEND, Fault};
use crate::timing::wall_micros;
use crate::transaction::Transaction;
use crate::wire::{self, LockRow, nanos, signed, size, unsigned};

/// A waiter is not notified by others: its client polls.
type Place = lock_rules::Place<()>;

pub(crate) struct SqliteRows<'a> {
    pub(crate) transaction: &'a Transaction<'a>,
    pub(crate) key: String,
    /// The row in `locks`, once it was read; `None` if there is none.
    pub(crate) lock: Option<Option<LockRow>>,
}

impl<'a> SqliteRows<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, name: &LockName) -> Self {
        Self { transaction, key: transaction.key(name), lock: None }
    }

    /// The row of the lock.
    pub(crate) fn lock(&mut self) -> Result<Option<&LockRow>, Fault> {
        if self.lock.is_none() {
            let row = self.transaction.live(wire::LOCK, &self.key, LockRow::read)?;
            self.keep(row)?;
        }
        Ok(self.lock.as_ref().and_then(Option::as_ref))
    }

    /// Keeps the row of the lock, under the limit that was set: a program that does not know that may have been the first to hold.
    fn keep(&mut self, mut row: Option<LockRow>) -> Result<(), Fault> {
        if let Some(LockRow { mode: mode @ Mode::Permits { .. }, .. }) = &mut row
            && let Some(record) = self.limit()?
        {
            *mode = mode.under(record.limit());
        }
        self.lock = Some(row);
        Ok(())
    }

    /// How several hold the lock.
    pub(crate) fn several(&mut self) -> Result<Option<Mode>, Fault> {
        Ok(self.lock()?.map(|row| row.mode).filter(|mode| *mode != Mode::Exclusive))
    }

    /// The lease that holds the lock alone.
    pub(crate) fn alone(&mut self) -> Result<Option<&Hold>, Fault> {
        Ok(self.lock()?.filter(|row| row.mode == Mode::Exclusive).map(|row| &row.last))
    }

    /// The first leases, for display, and the number of all.
    pub(crate) fn holds(&mut self, most: usize) -> Result<(Vec<Hold>, u32), Fault> {
        let Some(mode) = self.several()? else {
            let alone: Vec<Hold> = self.alone()?.cloned().into_iter().collect();
            let count = u32::from(!alone.is_empty());
            return Ok((alone, count));
        };
        let count = self.transaction.live(wire::HOLDERS, &self.key, |row| row.get(0))?.map_or(0, wire::count);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let last = named_params! { ":name": self.key, ":now": nanos(self.transaction.now), ":most": most };
        Ok((self.transaction.all(wire::HOLDS, last, |row| wire::hold(row, mode))?, count))
    }

    /// The first waiters, for display, and the number of all.
    pub(crate) fn waiting(&self, most: usize) -> Result<(Vec<Waiter>, u32), Fault> {
        let count = self.transaction.live(wire::WAITERS, &self.key, |row| row.get(0))?.map_or(0, wire::count);
        if count == 0 {
            return Ok((Vec::new(), 0));
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let now = self.transaction.now;
        let first = named_params! { ":name": self.key, ":now": nanos(now), ":most": most };
        Ok((self.transaction.all(wire::PLACES, first, |row| Ok(wire::place(row)?.shown(now)))?, count))
    }

    /// Reads the row of the lock, and removes what has expired and would be read again and again: places, and leases with slots.
    pub(crate) fn drop_dead(&mut self) -> Result<(), Fault> {
        let now = nanos(self.transaction.now);
        let found = self
            .transaction
            .live(wire::LOCK_AND_DEAD, &self.key, |row| Ok((LockRow::read_any(row)?, row.get(5)?, row.get(6)?)))?;
        let (lock, places, leases) = found.unwrap_or_default();
        self.keep(lock)?;
        let has_slots = matches!(self.several()?, Some(Mode::Permits { .. }));
        let dead = named_params! { ":name": self.key, ":now": now };
        if places {
            self.transaction.run(wire::DROP_DEAD_PLACES, dead)?;
        }
        if leases && has_slots {
            self.transaction.return_expired(&self.key)?;
            self.transaction.run(wire::DROP_DEAD_HOLDS, dead)?;
        }
        Ok(())
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
        let spans = |hold: &&Hold| hold.tokens.contains(token);
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
        if self.several()?.is_none() {
            return Ok(ends_of(permits, self.alone()?.into_iter().map(|hold| (hold.until, hold.mode.count()))));
        }
        // Each lease has a permit at least.
        let first = named_params! { ":name": self.key, ":now": nanos(self.transaction.now), ":most": permits };
        Ok(ends_of(permits, self.transaction.all(wire::FIRST_ENDS, first, wire::end)?.into_iter()))
    }

    fn free_slots(&mut self, count: u32) -> Result<Vec<u32>, Fault> {
        if self.several()?.is_none() {
            return Ok((0..count).collect());
        }
        let ranges =
            self.transaction.all(wire::FREE_SLOTS, named_params! { ":name": self.key, ":most": count }, |row| {
                Ok(row.get::<_, u32>(0)?..row.get::<_, Option<u32>>(1)?.unwrap_or(u32::MAX))
            })?;
        Ok(ranges.into_iter().flatten().take(size(count)).collect())
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

    fn write(&mut self, changes: Changes<()>) -> Result<(), Fault> {
        self.write_all(changes)
    }
}
