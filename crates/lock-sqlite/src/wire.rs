//! The statements, and what their rows mean. Pure: nothing here touches a file or a clock.
//!
//! In every statement `:boot` and `:now` are the present boot and moment: a row of another boot has ended.

use std::error::Error;
use std::time::Duration;

use lock_core::{FencingToken, Holder, Moment, Note, Owner, TokenRange, Ttl, Width};
use rusqlite::types::Type;
use rusqlite::{Error as SqlError, Row};

/// The longest lease of a place in the queue, and of a lock that was handed over and not renewed yet.
///
/// Chosen: a stopped process keeps the others waiting for at most this long, however long its ttl is.
pub(crate) const PLACE_MAX: Duration = Duration::from_secs(10);

/// The shortest life of a tombstone: a late claim can be under way for longer than a very short ttl.
pub(crate) const TOMBSTONE_MIN: Duration = Duration::from_secs(5);

/// How many locks one page of a listing looks at, at most.
pub(crate) const SCAN_MAX: u32 = 1000;

/// How long a place lasts unless it is refreshed, and a hand-over unless it is renewed.
pub(crate) fn place_for(ttl: Ttl) -> Duration {
    ttl.get().min(PLACE_MAX)
}

/// How long a tombstone refuses late claims of this ttl.
pub(crate) fn tombstone_for(ttl: Ttl) -> Duration {
    ttl.get().max(TOMBSTONE_MIN)
}

pub(crate) const HOLD: &str = "SELECT owner, low, high, note, expires_ns - :now FROM locks
    WHERE name = :name AND boot = :boot AND expires_ns > :now";
pub(crate) const LAST_OWNER: &str = "SELECT owner FROM locks WHERE name = :name";
pub(crate) const SET_HOLD: &str = "INSERT OR REPLACE INTO locks(name, owner, low, high, note, boot, expires_ns)
    VALUES (:name, :owner, :low, :high, :note, :boot, :until)";
pub(crate) const CLEAR_HOLD: &str = "DELETE FROM locks WHERE name = :name";
pub(crate) const RENEW: &str = "UPDATE locks SET expires_ns = :until
    WHERE name = :name AND owner = :owner AND low = :low AND high = :high AND boot = :boot AND expires_ns > :now";

pub(crate) const FIRST_PLACE: &str = "SELECT owner, ttl_ms, width, note, expires_ns - :now FROM queue
    WHERE name = :name AND boot = :boot AND expires_ns > :now ORDER BY place LIMIT 1";
pub(crate) const REFRESH_PLACE: &str =
    "UPDATE queue SET ttl_ms = :ttl, width = :width, note = :note, expires_ns = :until
    WHERE name = :name AND owner = :owner AND boot = :boot AND expires_ns > :now";
pub(crate) const APPEND_PLACE: &str = "INSERT INTO queue(name, place, owner, ttl_ms, width, note, boot, expires_ns)
    SELECT :name, coalesce(max(place), 0) + 1, :owner, :ttl, :width, :note, :boot, :until FROM queue WHERE name = :name";
pub(crate) const POSITION: &str = "SELECT count(*) FROM queue WHERE name = :name AND boot = :boot AND expires_ns > :now
    AND place <= (SELECT place FROM queue WHERE name = :name AND owner = :owner)";
pub(crate) const WAITERS: &str = "SELECT count(*) FROM queue WHERE name = :name AND boot = :boot AND expires_ns > :now";
pub(crate) const DROP_PLACE: &str = "DELETE FROM queue WHERE name = :name AND owner = :owner";
pub(crate) const DROP_DEAD_PLACES: &str =
    "DELETE FROM queue WHERE name = :name AND NOT (boot = :boot AND expires_ns > :now)";

pub(crate) const LAST_TOKEN: &str = "SELECT last FROM counter";
pub(crate) const SET_LAST_TOKEN: &str = "UPDATE counter SET last = :last";

pub(crate) const TOMBSTONE: &str = "SELECT 1 FROM tombstones
    WHERE name = :name AND owner = :owner AND boot = :boot AND expires_ns > :now";
pub(crate) const SET_TOMBSTONE: &str =
    "INSERT OR REPLACE INTO tombstones(name, owner, boot, expires_ns) VALUES (:name, :owner, :boot, :until)";

pub(crate) const LIST: &str = "SELECT owner, low, high, note, expires_ns - :now, name FROM locks
    WHERE name > :name AND boot = :boot AND expires_ns > :now ORDER BY name LIMIT :limit";

/// Clears expired rows of a table along the way: among the rows that follow a name, and among the first ones.
macro_rules! sweep {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM (SELECT * FROM (SELECT * FROM ",
            $table,
            " WHERE name > :name ORDER BY ",
            $key,
            " LIMIT :limit) UNION ALL SELECT * FROM (SELECT * FROM ",
            $table,
            " ORDER BY ",
            $key,
            " LIMIT :limit)) WHERE NOT (boot = :boot AND expires_ns > :now))"
        )
    };
}

/// One sweep for this many grants and tombstones, which add a row each.
pub(crate) const SWEEP_EVERY: u32 = 16;

/// How many rows a sweep reads in each of its two places: bounded, and far more than were added since the last sweep.
pub(crate) const SWEEP_ROWS: u32 = 8 * SWEEP_EVERY;

pub(crate) const SWEEPS: [&str; 3] =
    [sweep!("locks", "name"), sweep!("queue", "name, place"), sweep!("tombstones", "name, owner")];

/// A live hold, from the first columns of a row.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) owner: Owner,
    pub(crate) tokens: TokenRange,
    note: Note,
    pub(crate) remaining: Duration,
}

impl Hold {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self, SqlError> {
        let token = |column| parsed(column, FencingToken::try_from(row.get::<_, i64>(column)?));
        Ok(Self {
            owner: owner(row, 0)?,
            tokens: parsed(1, TokenRange::new(token(1)?, token(2)?))?,
            note: note(row, 3)?,
            remaining: Duration::from_nanos(unsigned(row.get(4)?)),
        })
    }

    pub(crate) fn shown(&self) -> Holder {
        Holder::Leasehold { tokens: self.tokens, note: self.note.clone() }
    }
}

/// A live place in the queue, with all that a hand-over needs, since the waiter is not asked then.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    pub(crate) ttl: Ttl,
    pub(crate) width: Width,
    pub(crate) note: Note,
    pub(crate) remaining: Duration,
}

impl Place {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self, SqlError> {
        let width = usize::try_from(row.get::<_, i64>(2)?).unwrap_or(1);
        Ok(Self {
            owner: owner(row, 0)?,
            ttl: parsed(1, Ttl::new(Duration::from_millis(unsigned(row.get(1)?))))?,
            width: Width::for_waiters(width),
            note: note(row, 3)?,
            remaining: Duration::from_nanos(unsigned(row.get(4)?)),
        })
    }
}

fn owner(row: &Row<'_>, column: usize) -> Result<Owner, SqlError> {
    parsed(column, row.get_ref(column)?.as_str()?.parse())
}

fn note(row: &Row<'_>, column: usize) -> Result<Note, SqlError> {
    Ok(Note::from_wire(row.get_ref(column)?.as_str()?))
}

fn parsed<T, E: Error + Send + Sync + 'static>(column: usize, result: Result<T, E>) -> Result<T, SqlError> {
    result.map_err(|error| SqlError::FromSqlConversionFailure(column, Type::Null, Box::new(error)))
}

/// SQLite's integers are signed; our numbers stay far below their limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn nanos(moment: Moment) -> i64 {
    signed(moment.as_nanos())
}

pub(crate) fn count(places: i64) -> u32 {
    u32::try_from(places).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_lasts_ten_seconds_at_most_and_a_tombstone_five_at_least() {
        let ttl = |text: &str| text.parse::<Ttl>().unwrap();
        assert_eq!(place_for(ttl("30s")), Duration::from_secs(10));
        assert_eq!(place_for(ttl("3s")), Duration::from_secs(3));
        assert_eq!(tombstone_for(ttl("30s")), Duration::from_secs(30));
        assert_eq!(tombstone_for(ttl("100ms")), Duration::from_secs(5));
    }

    #[test]
    fn numbers_saturate_at_the_sign() {
        assert_eq!(signed(u64::MAX), i64::MAX);
        assert_eq!(unsigned(-1), 0);
        assert_eq!(count(i64::MAX), u32::MAX);
    }
}
