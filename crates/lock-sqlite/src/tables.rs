//! What a transaction reads and writes, row by row.

use lock_core::inspect::Entry;
use lock_core::{ErrorKind, LockName, Mode, Operation, Owner, TokenRange, Ttl, Width};
use rusqlite::{OptionalExtension, Params, Row, named_params};

use crate::error::{Fault, refusal};
use crate::timing::wall_micros;
use crate::transaction::Transaction;
use crate::wire::{self, Held, Hold, Place, count, nanos, tombstone_for, unsigned};

impl Transaction<'_> {
    /// How the lock is held now.
    pub(crate) fn held(&self, key: &str) -> Result<Option<Held>, Fault> {
        Ok(self.lock(key)?.filter(Held::is_living))
    }

    /// How the lock was held last, also after the end of that, unless its row was cleared since.
    pub(crate) fn lock(&self, key: &str) -> Result<Option<Held>, Fault> {
        self.live(wire::LOCK, key, Held::from_row)
    }

    /// One of several holds.
    pub(crate) fn hold_of(&self, key: &str, owner: Owner) -> Result<Option<Hold>, Fault> {
        let mut statement = self.db.prepare_cached(wire::HOLD)?;
        let living = named_params! {
            ":name": key, ":owner": owner.to_wire(), ":now": nanos(self.now),
        };
        Ok(statement.query_row(living, Hold::from_several).optional()?)
    }

    /// All of several holds, the one that ends last first.
    pub(crate) fn holds(&self, key: &str) -> Result<Vec<Hold>, Fault> {
        let mut statement = self.db.prepare_cached(wire::HOLDS)?;
        let living = named_params! { ":name": key, ":now": nanos(self.now) };
        let rows = statement.query_map(living, Hold::from_several)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(crate) fn first_place(&self, key: &str) -> Result<Option<Place>, Fault> {
        self.live(wire::FIRST_PLACE, key, Place::from_row)
    }

    /// The owner's position in the queue, 1 for the next in line; 0 if it is not in the queue.
    pub(crate) fn position(&self, key: &str, owner: Owner) -> Result<u32, Fault> {
        let place = named_params! {
            ":name": key, ":owner": owner.to_wire(), ":now": nanos(self.now),
        };
        Ok(count(self.db.prepare_cached(wire::POSITION)?.query_row(place, |row| row.get(0))?))
    }

    /// How many living places there are, and the modes of the first ones.
    pub(crate) fn waiting(&self, key: &str) -> Result<(u32, Vec<Mode>), Fault> {
        let waiters = count(self.live(wire::WAITERS, key, |row| row.get(0))?.unwrap_or(0));
        if waiters == 0 {
            return Ok((0, Vec::new()));
        }
        let mut statement = self.db.prepare_cached(wire::PLACES)?;
        let living = named_params! { ":name": key, ":now": nanos(self.now) };
        let modes = statement.query_map(living, |row| Ok(Place::from_row(row)?.mode))?.take(Entry::SHOWN_MAX);
        Ok((waiters, modes.collect::<Result<_, _>>()?))
    }

    pub(crate) fn held_after(&self, key: &str) -> Result<Vec<(String, Held)>, Fault> {
        let mut statement = self.db.prepare_cached(wire::LIST)?;
        let bounds = named_params! {
            ":name": key, ":limit": wire::SCAN_MAX, ":now": nanos(self.now),
        };
        let rows = statement.query_map(bounds, |row| Ok((row.get(5)?, Held::from_row(row)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The row of a lock: its hold, or the last one of several under an owner that nobody is.
    pub(crate) fn set_lock(&self, key: &str, owner: &str, hold: &Hold) -> Result<(), Fault> {
        self.run(
            wire::SET_LOCK,
            named_params! {
                ":name": key, ":owner": owner,
                ":low": i64::from(hold.tokens.low()), ":high": i64::from(hold.tokens.high()),
                ":note": hold.note.to_wire(), ":boot": self.boot(), ":now": nanos(self.now),
                ":until": nanos(self.now + hold.remaining),
            },
        )?;
        Ok(())
    }

    /// Ends the exclusive lease of this owner if it is living and nobody waits. Returns whether it did.
    pub(crate) fn end_alone(&self, key: &str, owner: Owner) -> Result<bool, Fault> {
        let lease = named_params! {
            ":name": key, ":owner": owner.to_wire(), ":now": nanos(self.now),
        };
        Ok(self.run(wire::END_ALONE, lease)? == 1)
    }

    pub(crate) fn set_hold(&self, key: &str, hold: &Hold) -> Result<(), Fault> {
        self.run(
            wire::SET_HOLD,
            named_params! {
                ":name": key, ":owner": hold.owner.to_wire(), ":slots": hold.slots.to_string(),
                ":low": i64::from(hold.tokens.low()), ":high": i64::from(hold.tokens.high()),
                ":note": hold.note.to_wire(), ":boot": self.boot(), ":now": nanos(self.now),
                ":until": nanos(self.now + hold.remaining),
            },
        )?;
        Ok(())
    }

    /// Ends one of several holds. Returns whether it was living; `None` if there was none.
    pub(crate) fn end_hold(&self, key: &str, owner: Owner) -> Result<Option<bool>, Fault> {
        let mut statement = self.db.prepare_cached(wire::END_HOLD)?;
        let params = named_params! {
            ":name": key, ":owner": owner.to_wire(), ":now": nanos(self.now),
        };
        Ok(statement.query_row(params, |row| row.get(0)).optional()?)
    }

    /// Drops the places that have ended and that of this owner. Returns how many the owner had.
    pub(crate) fn clear_places(&self, key: &str, owner: Owner) -> Result<usize, Fault> {
        if !self.db.prepare_cached(wire::ANY_PLACE)?.exists(named_params! { ":name": key })? {
            return Ok(0);
        }
        self.drop_dead_places(key)?;
        self.drop_place(key, owner)
    }

    pub(crate) fn drop_place(&self, key: &str, owner: Owner) -> Result<usize, Fault> {
        self.run(wire::DROP_PLACE, named_params! { ":name": key, ":owner": owner.to_wire() })
    }

    pub(crate) fn drop_dead_places(&self, key: &str) -> Result<(), Fault> {
        self.run(wire::DROP_DEAD_PLACES, named_params! { ":name": key, ":now": nanos(self.now) })?;
        Ok(())
    }

    /// The last token that was drawn.
    pub(crate) fn last_token(&self) -> Result<i64, Fault> {
        Ok(self.db.prepare_cached(wire::LAST_TOKEN)?.query_row((), |row| row.get(0))?)
    }

    /// The last token that was drawn, if the lock is free for this owner: see `LAST_TOKEN_IF_FREE`.
    pub(crate) fn last_token_if_free(&self, key: &str, owner: Owner) -> Result<Option<i64>, Fault> {
        let mut statement = self.db.prepare_cached(wire::LAST_TOKEN_IF_FREE)?;
        let claim = named_params! {
            ":name": key, ":owner": owner.to_wire(), ":now": nanos(self.now),
        };
        Ok(statement.query_row(claim, |row| row.get(0)).optional()?)
    }

    /// Draws above the last token and every one drawn before, also from a file that this one replaced: that file drew at
    /// most one token per microsecond.
    pub(crate) fn draw(&self, last: i64, width: Width, operation: Operation) -> Result<TokenRange, Fault> {
        let tokens = TokenRange::above(unsigned(last).max(wall_micros()), width).map_err(|invalid| {
            refusal(operation, ErrorKind::Protocol, "the tokens are used up")
                .with_source(invalid)
                .with_remedy("set the clock right, start a new file, and make the resource forget the old one's tokens")
        })?;
        self.run(wire::SET_LAST_TOKEN, named_params! { ":last": i64::from(tokens.high()) })?;
        Ok(tokens)
    }

    pub(crate) fn refuse_given_up(&self, key: &str, owner: Owner) -> Result<(), Fault> {
        let buried = self
            .db
            .prepare_cached(wire::TOMBSTONE)?
            .exists(named_params! { ":name": key, ":owner": owner.to_wire(), ":now": nanos(self.now) })?;
        if !buried {
            return Ok(());
        }
        let error = refusal(Operation::Acquire, ErrorKind::Protocol, "this claim was given up");
        Err(error.with_remedy("ask again as another owner").into())
    }

    /// Refuses late claims of an owner that were for this ttl.
    pub(crate) fn bury(&self, key: &str, owner: Owner, ttl: Ttl) -> Result<(), Fault> {
        let until = nanos(self.now + tombstone_for(ttl));
        let tombstone =
            named_params! { ":name": key, ":owner": owner.to_wire(), ":boot": self.boot(), ":until": until };
        self.run(wire::SET_TOMBSTONE, tombstone)?;
        self.sweep(key)
    }

    /// Called with each new row: clears some expired rows every now and then. An expired hold may be cleared although others wait: the lock is free
    /// either way.
    pub(crate) fn sweep(&self, key: &str) -> Result<(), Fault> {
        if !self.settings.is_sweep_due() {
            return Ok(());
        }
        for sweep in wire::SWEEPS {
            let now = nanos(self.now);
            self.run(sweep, named_params! { ":name": key, ":now": now, ":limit": wire::SWEEP_ROWS })?;
        }
        Ok(())
    }

    /// The one row about a lock, if there is one that has not expired.
    pub(crate) fn live<T>(
        &self,
        sql: &str,
        key: &str,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Fault> {
        let live = named_params! { ":name": key, ":now": nanos(self.now) };
        Ok(self.db.prepare_cached(sql)?.query_row(live, read).optional()?)
    }

    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize, Fault> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }

    pub(crate) fn key(&self, name: &LockName) -> String {
        self.settings.prefix.key(name.as_str())
    }

    pub(crate) fn boot(&self) -> &str {
        self.settings.timing.boot()
    }
}
