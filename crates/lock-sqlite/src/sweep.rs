//! Expired rows of other locks, which a request clears along the way.

use rusqlite::{Row, named_params};

use crate::error::Fault;
use crate::settings::SWEEP_ROWS;
use crate::transaction::Transaction;
use crate::wire::{self, nanos};

/// Selects expired rows of a table along the way: among the rows that follow a name, and among the first ones.
macro_rules! swept {
    ($table:literal, $key:literal, $columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM (SELECT * FROM (SELECT * FROM ",
            $table,
            " WHERE name > :name ORDER BY ",
            $key,
            " LIMIT :limit) UNION ALL SELECT * FROM (SELECT * FROM ",
            $table,
            " ORDER BY ",
            $key,
            " LIMIT :limit)) WHERE expires_ns <= :now"
        )
    };
}

/// Removes them.
macro_rules! sweep {
    ($table:literal, $key:literal) => {
        concat!("DELETE FROM ", $table, " WHERE (", $key, ") IN (", swept!($table, $key, $key), ")")
    };
}

/// The leases with slots that the sweep of `holds` removes.
const SWEPT_SLOTS: &str = concat!(swept!("holds", "name, owner", "DISTINCT name, owner, slots"), " AND slots <> ''");

const SWEEPS: [&str; 4] = [
    sweep!("locks", "name"),
    sweep!("holds", "name, owner"),
    sweep!("queue", "name, place"),
    sweep!("tombstones", "name, owner"),
];

impl Transaction<'_> {
    /// Called with each new row: clears some expired rows every now and then. An expired lease may be cleared although others
    /// wait: the lock is free either way.
    pub(crate) fn sweep(&self, key: &str) -> Result<(), Fault> {
        if !self.settings.is_sweep_due() {
            return Ok(());
        }
        let now = nanos(self.now);
        let old = named_params! { ":name": key, ":now": now, ":limit": SWEEP_ROWS };
        let swept = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, wire::slots(row, 2)?));
        for (name, owner, slots) in self.all(SWEPT_SLOTS, old, swept)? {
            self.return_these(&name, &owner, &slots)?;
        }
        SWEEPS.iter().try_for_each(|sweep| self.run(sweep, old).map(drop))
    }
}
