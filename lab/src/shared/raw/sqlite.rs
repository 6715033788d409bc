//! Numbers under keys in a SQLite file.

use std::path::Path;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock};
use rusqlite::{Connection, Error, OptionalExtension, Params, TransactionBehavior};

use super::{Fence, Raw};
use crate::shared::failure::{Exit, Failure};

/// How long a request waits while others write.
const BUSY_WITHIN: Duration = Duration::from_secs(5);

/// Nothing here has to survive a crash of the machine. `expires` is read on this machine's clock.
const SET_UP: &str = "
PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS raw(key TEXT PRIMARY KEY, value INTEGER NOT NULL, expires INTEGER) STRICT;
";

/// Stores a token, unless a higher one is stored.
const RAISE: &str = "INSERT INTO raw VALUES (?1, ?2, NULL) ON CONFLICT(key)
    DO UPDATE SET value = excluded.value WHERE value <= excluded.value";

/// A connection to the file.
pub(crate) struct File(Connection);

impl File {
    /// Opens the file, and creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY_WITHIN)?;
        db.execute_batch(SET_UP)?;
        Ok(Self(db))
    }

    fn number(&self, sql: &str, params: impl Params) -> Result<Option<u64>, Failure> {
        let found: Option<i64> = self.0.query_row(sql, params, |row| row.get(0)).optional()?;
        Ok(found.map(i64::cast_unsigned))
    }

    fn changes(&self, sql: &str, params: impl Params) -> Result<bool, Failure> {
        Ok(self.0.execute(sql, params)? > 0)
    }
}

impl Raw for File {
    fn get(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        let sql = "SELECT value FROM raw WHERE key = ?1 AND (expires IS NULL OR expires > ?2)";
        self.number(sql, (key, after(Duration::ZERO)))
    }

    fn set(&mut self, key: &str, value: u64) -> Result<(), Failure> {
        let sql = "INSERT OR REPLACE INTO raw VALUES (?1, ?2, NULL)";
        self.changes(sql, (key, value.cast_signed())).map(drop)
    }

    fn set_if_absent(&mut self, key: &str, value: u64, expiry: Option<Duration>) -> Result<bool, Failure> {
        let sql = "INSERT INTO raw VALUES (?1, ?2, ?3) ON CONFLICT(key)
                   DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE expires <= ?4";
        self.changes(sql, (key, value.cast_signed(), expiry.map(after), after(Duration::ZERO)))
    }

    fn renew(&mut self, key: &str, expiry: Duration) -> Result<Option<u64>, Failure> {
        let sql = "UPDATE raw SET expires = ?2 WHERE key = ?1 AND (expires IS NULL OR expires > ?3) RETURNING value";
        self.number(sql, (key, after(expiry), after(Duration::ZERO)))
    }

    fn delete(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        let sql = "DELETE FROM raw WHERE key = ?1 AND (expires IS NULL OR expires > ?2) RETURNING value";
        self.number(sql, (key, after(Duration::ZERO)))
    }

    fn compare_and_delete(&mut self, key: &str, value: u64) -> Result<bool, Failure> {
        let sql = "DELETE FROM raw WHERE key = ?1 AND value = ?2 AND (expires IS NULL OR expires > ?3)";
        self.changes(sql, (key, value.cast_signed(), after(Duration::ZERO)))
    }

    fn raise(&mut self, fence: Fence<'_>) -> Result<bool, Failure> {
        self.changes(RAISE, (fence.key, i64::from(fence.token)))
    }

    fn set_fenced(&mut self, key: &str, value: u64, fence: Fence<'_>) -> Result<bool, Failure> {
        let write = "INSERT OR REPLACE INTO raw VALUES (?1, ?2, NULL)";
        let both = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let accepted = both.execute(RAISE, (fence.key, i64::from(fence.token)))? > 0;
        if accepted {
            both.execute(write, (key, value.cast_signed()))?;
        }
        both.commit()?;
        Ok(accepted)
    }
}

/// This much later than now, on a clock that all processes of this machine share.
fn after(duration: Duration) -> i64 {
    (HostClock.now() + duration).as_nanos().cast_signed()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = format!("the scene's file failed: {error}; check that the temporary directory has free space");
        Self::new(Exit::Unavailable, message)
    }
}
