//! The statements, and what their rows mean. Pure: nothing here touches a file or a clock.
//!
//! In every statement `:now` is the present moment. Rows of all boots count by it: those of an earlier boot were ended when
//! the file was opened (see `boots`), and the others count from the same start of the machine.

use std::error::Error;
use std::time::Duration;

use lock_core::limit::Record;
use lock_core::{FencingToken, Mode, Moment, Note, Owner, Slots, Stamped, Terms, TokenRange, Ttl, Width};
use lock_rules::{Hold, Place};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Error as SqlError, Row};

use crate::modes;

/// How many locks one page of a listing looks at, at most.
pub(crate) const SCAN_MAX: u32 = 1000;

/// The row of a lock.
pub(crate) const LOCK: &str = "SELECT owner, low, high, note, expires_ns FROM locks
    WHERE name = :name AND expires_ns > :now";
/// The row of a lock, without columns if there is none; and whether places have expired, and some of several leases.
pub(crate) const LOCK_AND_DEAD: &str = "SELECT owner, low, high, note, expires_ns,
        EXISTS (SELECT 1 FROM queue WHERE name = :name AND expires_ns + 0 <= :now),
        EXISTS (SELECT 1 FROM holds WHERE name = :name AND expires_ns <= :now)
    FROM (SELECT 1) LEFT JOIN locks ON name = :name AND expires_ns > :now";
pub(crate) const SET_LOCK: &str =
    "INSERT OR REPLACE INTO locks(name, owner, low, high, note, boot, expires_ns, written_ns)
    VALUES (:name, :owner, :low, :high, :note, :boot, :until, :now)";
pub(crate) const CLEAR_LOCK: &str = "DELETE FROM locks WHERE name = :name";
pub(crate) const EXTEND_LOCK: &str = "UPDATE locks SET expires_ns = :until, written_ns = :now
    WHERE name = :name AND owner = :owner";

/// One of several leases. They count only beside a living row of their lock that says so.
pub(crate) const HOLD: &str = "SELECT owner, low, high, note, expires_ns, slots FROM holds
    WHERE name = :name AND owner = :owner AND expires_ns > :now";
pub(crate) const HOLD_WITH: &str = "SELECT owner, low, high, note, expires_ns, slots FROM holds
    WHERE name = :name AND :token BETWEEN low AND high AND expires_ns > :now";
/// The one that ends last first.
pub(crate) const HOLDS: &str = "SELECT owner, low, high, note, expires_ns, slots FROM holds
    WHERE name = :name AND expires_ns > :now ORDER BY expires_ns DESC, owner DESC LIMIT :most";
pub(crate) const HOLDERS: &str = "SELECT count(*) FROM holds WHERE name = :name AND expires_ns > :now";
/// The ends and permits of those that end first.
pub(crate) const FIRST_ENDS: &str = "SELECT expires_ns, json_array_length('[' || slots || ']') FROM holds
    WHERE name = :name AND expires_ns > :now ORDER BY expires_ns, owner LIMIT :most";
/// The one that ends last, except that of an owner.
pub(crate) const LAST_HOLD: &str = "SELECT owner, low, high, note, expires_ns, slots FROM holds
    WHERE name = :name AND owner <> :except AND expires_ns > :now ORDER BY expires_ns DESC, owner DESC LIMIT 1";
pub(crate) const SET_HOLD: &str =
    "INSERT OR REPLACE INTO holds(name, owner, slots, low, high, note, boot, expires_ns, written_ns)
    VALUES (:name, :owner, :slots, :low, :high, :note, :boot, :until, :now)";
pub(crate) const EXTEND_HOLD: &str = "UPDATE holds SET expires_ns = :until, written_ns = :now
    WHERE name = :name AND owner = :owner";
pub(crate) const END_HOLD: &str = "DELETE FROM holds WHERE name = :name AND owner = :owner";
pub(crate) const ANY_HOLD: &str = "SELECT 1 FROM holds WHERE name = :name LIMIT 1";
pub(crate) const CLEAR_HOLDS: &str = "DELETE FROM holds WHERE name = :name";
pub(crate) const DROP_DEAD_HOLDS: &str = "DELETE FROM holds WHERE name = :name AND expires_ns <= :now";
/// Slots are numbers with commas in between. The count includes leases that have expired and are still there.
pub(crate) const PERMITS: &str = "SELECT value - (
        SELECT coalesce(sum(json_array_length('[' || slots || ']')), 0) FROM holds
        WHERE name = :name AND expires_ns <= :now
    ) FROM permits WHERE name = :name AND kind = 0 AND slot = 0";
/// The lowest free slots, as ranges: the first slot of each, and the taken slot that ends it.
pub(crate) const FREE_SLOTS: &str =
    "SELECT first, (SELECT min(slot) FROM permits WHERE name = :name AND kind = 1 AND slot > first) FROM (
        SELECT 0 AS first WHERE NOT EXISTS (SELECT 1 FROM permits WHERE name = :name AND kind = 1 AND slot = 0)
        UNION ALL
        SELECT * FROM (SELECT slot + 1 FROM permits WHERE name = :name AND kind = 2 ORDER BY slot LIMIT :most)
    )";

/// The first place behind a number.
pub(crate) const NEXT_PLACE: &str = "SELECT owner, ttl_ms, width, note, expires_ns, kind, place FROM queue
    WHERE name = :name AND place > :number AND expires_ns > :now ORDER BY place LIMIT 1";
/// Without this hint, SQLite would read all places of the lock: it expects few.
pub(crate) const PLACE: &str = "SELECT owner, ttl_ms, width, note, expires_ns, kind, place
    FROM queue INDEXED BY queue_by_owner
    WHERE name = :name AND owner = :owner AND expires_ns > :now";
/// Of permits, the width of a place is their number.
pub(crate) const QUEUED_ABOVE: &str = "SELECT owner, ttl_ms, width, note, expires_ns, kind, place FROM queue
    WHERE name = :name AND kind > 0 AND width > :permits AND expires_ns > :now";
pub(crate) const PLACES: &str = "SELECT owner, ttl_ms, width, note, expires_ns, kind, place FROM queue
    WHERE name = :name AND expires_ns > :now ORDER BY place LIMIT :most";
pub(crate) const PLACES_BEFORE: &str = "SELECT count(*) FROM (SELECT 1 FROM queue
    WHERE name = :name AND place < :number AND expires_ns > :now ORDER BY place LIMIT :most)";
pub(crate) const WAITERS: &str = "SELECT count(*) FROM queue WHERE name = :name AND expires_ns + 0 > :now";
pub(crate) const LAST_NUMBER: &str = "SELECT coalesce(max(place), 0) FROM queue WHERE name = :name";
pub(crate) const SET_PLACE: &str =
    "INSERT OR REPLACE INTO queue(name, place, owner, ttl_ms, width, kind, note, boot, expires_ns)
    VALUES (:name, :place, :owner, :ttl, :width, :kind, :note, :boot, :until)";
pub(crate) const DROP_PLACE: &str = "DELETE FROM queue INDEXED BY queue_by_owner
    WHERE name = :name AND owner = :owner";
/// Finds them by the index on this expression.
pub(crate) const DROP_DEAD_PLACES: &str = "DELETE FROM queue WHERE name = :name AND expires_ns + 0 <= :now";

pub(crate) const LAST_TOKEN: &str = "SELECT last FROM counter";
pub(crate) const SET_LAST_TOKEN: &str = "UPDATE counter SET last = :last";

pub(crate) const TOMBSTONE: &str = "SELECT 1 FROM tombstones
    WHERE name = :name AND owner = :owner AND expires_ns > :now";
/// One that is there for longer stays.
pub(crate) const SET_TOMBSTONE: &str =
    "INSERT INTO tombstones(name, owner, boot, expires_ns) VALUES (:name, :owner, :boot, :until)
    ON CONFLICT DO UPDATE SET boot = :boot, expires_ns = max(expires_ns, :until)";

pub(crate) const RECORD: &str = "SELECT record FROM limits WHERE name = :name AND expires_ns > :now";
pub(crate) const SET_RECORD: &str =
    "INSERT OR REPLACE INTO limits(name, record, boot, expires_ns) VALUES (:name, :record, :boot, :until)";
pub(crate) const DROP_OLD_RECORDS: &str = "DELETE FROM limits WHERE expires_ns <= :now";
/// Places of permits have a kind above 0: their limit.
pub(crate) const LIMIT_PLACES: &str = "UPDATE queue SET kind = :limit WHERE name = :name AND kind > 0";

pub(crate) const REVOCATION: &str =
    "SELECT note FROM revocations WHERE name = :name AND token = :token AND expires_ns > :now";
pub(crate) const SET_REVOCATION: &str = "INSERT OR REPLACE INTO revocations(name, token, note, boot, expires_ns)
    VALUES (:name, :token, :note, :boot, :until)";
pub(crate) const DROP_OLD_REVOCATIONS: &str = "DELETE FROM revocations WHERE expires_ns <= :now";

/// The names of held locks.
pub(crate) const LIST: &str = "SELECT name FROM locks
    WHERE name > :name AND expires_ns > :now ORDER BY name LIMIT :limit";

/// What a statement may decide alone, because its rows say all that the rules would look at: see `fast`.
pub(crate) mod fast {
    /// The last token, if nobody holds the lock or waits for it, and this owner has not given up its claim.
    pub(crate) const LAST_TOKEN_IF_FREE: &str = "SELECT last FROM counter
        WHERE NOT EXISTS (SELECT 1 FROM locks WHERE name = :name AND expires_ns > :now)
        AND NOT EXISTS (SELECT 1 FROM queue WHERE name = :name AND expires_ns + 0 > :now)
        AND NOT EXISTS (SELECT 1 FROM tombstones
            WHERE name = :name AND owner = :owner AND expires_ns > :now)";
    /// The end of a lease for which nobody waits.
    pub(crate) const END_ALONE: &str = "DELETE FROM locks
        WHERE name = :name AND owner = :owner AND expires_ns > :now
        AND NOT EXISTS (SELECT 1 FROM queue WHERE name = :name)";
    pub(crate) const RENEW_ALONE: &str = "UPDATE locks SET expires_ns = :until, written_ns = :now
        WHERE name = :name AND owner = :owner AND low = :low AND high = :high AND expires_ns > :now";
}

/// The row of a lock.
#[derive(Clone, Debug)]
pub(crate) struct LockRow {
    /// Of permits, one permit.
    pub(crate) mode: Mode,
    /// The lease; of several, the one that ends last, without its owner and its slots.
    pub(crate) last: Hold,
}

impl LockRow {
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, SqlError> {
        let mode = modes::from_owner(row.get_ref(0)?.as_str()?);
        Ok(Self { mode, last: lease(row, mode, Slots::NONE)? })
    }

    /// `None` if the columns have no values.
    pub(crate) fn read_any(row: &Row<'_>) -> Result<Option<Self>, SqlError> {
        if row.get_ref(0)? == ValueRef::Null { Ok(None) } else { Self::read(row).map(Some) }
    }
}

/// One of several leases of this mode.
pub(crate) fn hold(row: &Row<'_>, mode: Mode) -> Result<Hold, SqlError> {
    let slots = slots(row, 5)?;
    let count = u32::try_from(slots.get().len()).unwrap_or(u32::MAX);
    // They may be more than the limit, if that was lowered.
    let permits = Mode::permits(count, Mode::LIMIT_MAX).ok().zip(mode.limit());
    lease(row, permits.map_or(mode, |(permits, limit)| permits.under(limit)), slots)
}

fn lease(row: &Row<'_>, mode: Mode, slots: Slots) -> Result<Hold, SqlError> {
    let token = |column| parsed(column, FencingToken::try_from(row.get::<_, i64>(column)?));
    let stamped = Stamped::from_wire(row.get_ref(3)?.as_str()?);
    Ok(Hold {
        owner: owner(row, 0)?,
        mode,
        tokens: parsed(1, TokenRange::new(token(1)?, token(2)?))?,
        slots,
        granted: since_origin(&stamped),
        until: moment(row, 4)?,
        note: stamped.note,
    })
}

/// The note of a lease with the time of its grant, or of a place with the time at which its waiter joined.
pub(crate) fn stamped(note: &Note, at: Option<Moment>) -> String {
    at.map_or_else(|| note.to_wire().to_owned(), |at| Stamped::new(note.clone(), at.since(Moment::ORIGIN)).to_wire())
}

fn since_origin(stamped: &Stamped) -> Option<Moment> {
    stamped.granted().map(|granted| Moment::ORIGIN + granted)
}

pub(crate) fn place(row: &Row<'_>) -> Result<Place<()>, SqlError> {
    let width = Width::for_waiters(usize::try_from(row.get::<_, i64>(2)?).unwrap_or(1));
    let ttl = parsed(1, Ttl::new(Duration::from_millis(unsigned(row.get(1)?))))?;
    let stamped = Stamped::from_wire(row.get_ref(3)?.as_str()?);
    Ok(Place {
        number: unsigned(row.get(6)?),
        owner: owner(row, 0)?,
        terms: Terms { mode: modes::from_kind(row.get(5)?, width), ttl },
        width,
        joined: since_origin(&stamped),
        until: moment(row, 4)?,
        note: stamped.note,
        client: (),
    })
}

/// When a lease ends, and how many permits it has.
pub(crate) fn end(row: &Row<'_>) -> Result<(Moment, u32), SqlError> {
    Ok((moment(row, 0)?, row.get(1)?))
}

pub(crate) fn record(row: &Row<'_>) -> Result<Record, SqlError> {
    parsed(0, row.get_ref(0)?.as_str()?.parse())
}

pub(crate) fn note(row: &Row<'_>) -> Result<Note, SqlError> {
    Ok(Note::from_wire(row.get_ref(0)?.as_str()?))
}

fn moment(row: &Row<'_>, column: usize) -> Result<Moment, SqlError> {
    Ok(Moment::from_nanos(unsigned(row.get(column)?)))
}

pub(crate) fn slots(row: &Row<'_>, column: usize) -> Result<Slots, SqlError> {
    let numbers = row.get_ref(column)?.as_str()?.split(',').filter(|number| !number.is_empty());
    Ok(Slots::new(parsed(column, numbers.map(str::parse).collect::<Result<Vec<u32>, _>>())?))
}

fn owner(row: &Row<'_>, column: usize) -> Result<Owner, SqlError> {
    parsed(column, row.get_ref(column)?.as_str()?.parse())
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

pub(crate) fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
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
    fn numbers_saturate_at_the_sign() {
        assert_eq!(signed(u64::MAX), i64::MAX);
        assert_eq!(unsigned(-1), 0);
        assert_eq!(count(i64::MAX), u32::MAX);
    }
}
