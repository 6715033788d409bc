//! The statements, and what their rows mean. Pure: nothing here touches a file or a clock.
//!
//! In every statement `:now` is the present moment. Rows of all boots count by it: those of a boot that is over were ended when
//! the file was opened (see `boots`), and the others count from the same start of the machine.

use std::error::Error;
use std::time::Duration;

use lock_core::{FencingToken, Holder, Mode, Moment, Note, Owner, Slots, Stamped, TokenRange, Ttl, Width, inspect};
use rusqlite::types::Type;
use rusqlite::{Error as SqlError, Row};

use crate::modes;

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

/// The row of a lock, also after its end.
pub(crate) const LOCK: &str = "SELECT owner, low, high, note, expires_ns - :now FROM locks
    WHERE name = :name";
pub(crate) const SET_LOCK: &str =
    "INSERT OR REPLACE INTO locks(name, owner, low, high, note, boot, expires_ns, written_ns)
    VALUES (:name, :owner, :low, :high, :note, :boot, :until, :now)";
/// The end of a lease for which nobody waits.
pub(crate) const END_ALONE: &str = "DELETE FROM locks
    WHERE name = :name AND owner = :owner AND expires_ns > :now
    AND NOT EXISTS (SELECT 1 FROM queue WHERE name = :name)";
pub(crate) const CLEAR_LOCK: &str = "DELETE FROM locks WHERE name = :name";
pub(crate) const RENEW_LOCK: &str = "UPDATE locks SET expires_ns = :until, written_ns = :now
    WHERE name = :name AND owner = :owner AND low = :low AND high = :high AND expires_ns > :now";

/// One of several holds. They count only beside a living row of their lock that says so.
pub(crate) const HOLD: &str = "SELECT owner, low, high, note, expires_ns - :now, slots FROM holds
    WHERE name = :name AND owner = :owner AND expires_ns > :now";
pub(crate) const HOLDS: &str = "SELECT owner, low, high, note, expires_ns - :now, slots FROM holds
    WHERE name = :name AND expires_ns > :now ORDER BY expires_ns DESC";
pub(crate) const LAST_HOLD: &str = "SELECT owner, low, high, note, expires_ns - :now, slots FROM holds
    WHERE name = :name AND expires_ns > :now ORDER BY expires_ns DESC LIMIT 1";
pub(crate) const SET_HOLD: &str =
    "INSERT OR REPLACE INTO holds(name, owner, slots, low, high, note, boot, expires_ns, written_ns)
    VALUES (:name, :owner, :slots, :low, :high, :note, :boot, :until, :now)";
pub(crate) const RENEW_HOLD: &str = "UPDATE holds SET expires_ns = :until, written_ns = :now
    WHERE name = :name AND owner = :owner AND low = :low AND high = :high AND expires_ns > :now";
pub(crate) const OTHER_HOLD: &str = "SELECT owner, low, high, note, expires_ns - :now, slots FROM holds
    WHERE name = :name AND owner <> :owner AND expires_ns > :now ORDER BY expires_ns DESC LIMIT 1";
/// Returns whether it was living.
pub(crate) const END_HOLD: &str = "DELETE FROM holds WHERE name = :name AND owner = :owner
    RETURNING expires_ns > :now";
pub(crate) const CLEAR_HOLDS: &str = "DELETE FROM holds WHERE name = :name";

pub(crate) const FIRST_PLACE: &str = "SELECT owner, ttl_ms, width, note, expires_ns - :now, kind FROM queue
    WHERE name = :name AND expires_ns > :now ORDER BY place LIMIT 1";
/// Any place, also one that has ended.
pub(crate) const ANY_PLACE: &str = "SELECT 1 FROM queue WHERE name = :name LIMIT 1";
pub(crate) const PLACES: &str = "SELECT owner, ttl_ms, width, note, expires_ns - :now, kind FROM queue
    WHERE name = :name AND expires_ns > :now ORDER BY place";
pub(crate) const REFRESH_PLACE: &str =
    "UPDATE queue SET ttl_ms = :ttl, width = :width, kind = :kind, note = :note, expires_ns = :until
    WHERE name = :name AND owner = :owner AND expires_ns > :now";
pub(crate) const APPEND_PLACE: &str =
    "INSERT INTO queue(name, place, owner, ttl_ms, width, kind, note, boot, expires_ns)
    SELECT :name, coalesce(max(place), 0) + 1, :owner, :ttl, :width, :kind, :note, :boot, :until
    FROM queue WHERE name = :name";
pub(crate) const POSITION: &str = "SELECT count(*) FROM queue WHERE name = :name AND expires_ns > :now
    AND place <= (SELECT place FROM queue WHERE name = :name AND owner = :owner)";
pub(crate) const WAITERS: &str = "SELECT count(*) FROM queue WHERE name = :name AND expires_ns > :now";
pub(crate) const DROP_PLACE: &str = "DELETE FROM queue WHERE name = :name AND owner = :owner";
pub(crate) const DROP_DEAD_PLACES: &str = "DELETE FROM queue WHERE name = :name AND expires_ns <= :now";

pub(crate) const LAST_TOKEN: &str = "SELECT last FROM counter";
/// The same if nobody holds the lock or waits for it, and this owner has not given up its claim.
pub(crate) const LAST_TOKEN_IF_FREE: &str = "SELECT last FROM counter
    WHERE NOT EXISTS (SELECT 1 FROM locks WHERE name = :name AND expires_ns > :now)
    AND NOT EXISTS (SELECT 1 FROM queue WHERE name = :name AND expires_ns > :now)
    AND NOT EXISTS (SELECT 1 FROM tombstones
        WHERE name = :name AND owner = :owner AND expires_ns > :now)";
pub(crate) const SET_LAST_TOKEN: &str = "UPDATE counter SET last = :last";

pub(crate) const TOMBSTONE: &str = "SELECT 1 FROM tombstones
    WHERE name = :name AND owner = :owner AND expires_ns > :now";
/// One that is there for longer stays.
pub(crate) const SET_TOMBSTONE: &str =
    "INSERT INTO tombstones(name, owner, boot, expires_ns) VALUES (:name, :owner, :boot, :until)
    ON CONFLICT DO UPDATE SET boot = :boot, expires_ns = max(expires_ns, :until)";

pub(crate) const LIST: &str = "SELECT owner, low, high, note, expires_ns - :now, name FROM locks
    WHERE name > :name AND expires_ns > :now ORDER BY name LIMIT :limit";

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
            " LIMIT :limit)) WHERE expires_ns <= :now)"
        )
    };
}

/// One sweep for this many grants and tombstones, which add a row each.
///
/// Chosen: a sweep that finds nothing takes as long as the statements of ten grants.
pub(crate) const SWEEP_EVERY: u32 = 64;

/// How many rows a sweep reads in each of its two places: bounded, and far more than were added since the last sweep.
pub(crate) const SWEEP_ROWS: u32 = 4 * SWEEP_EVERY;

pub(crate) const SWEEPS: [&str; 4] = [
    sweep!("locks", "name"),
    sweep!("holds", "name, owner"),
    sweep!("queue", "name, place"),
    sweep!("tombstones", "name, owner"),
];

/// A hold, from the first columns of a row.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) owner: Owner,
    pub(crate) tokens: TokenRange,
    pub(crate) slots: Slots,
    /// With the time of the grant by the clock that times leases.
    pub(crate) note: Stamped,
    /// Zero after its end.
    pub(crate) remaining: Duration,
}

/// How a lock is held.
#[derive(Debug)]
pub(crate) struct Held {
    /// Of permits, for one.
    pub(crate) mode: Mode,
    /// Of several holds the one that ends last, without its owner and its slots.
    pub(crate) last: Hold,
}

impl Held {
    /// From the row of a lock.
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self, SqlError> {
        Ok(Self { mode: modes::from_owner(row.get_ref(0)?.as_str()?), last: Hold::from_row(row)? })
    }

    pub(crate) fn is_living(&self) -> bool {
        !self.last.remaining.is_zero()
    }

    /// The mode of one of its holds.
    fn mode_of(&self, hold: &Hold) -> Mode {
        let count = u32::try_from(hold.slots.get().len()).unwrap_or(u32::MAX);
        match self.mode {
            Mode::Permits { .. } => {
                // They may be more than the limit, if that was lowered.
                let permits = Mode::permits(count, Mode::LIMIT_MAX).ok().zip(self.mode.limit());
                permits.map_or(self.mode, |(permits, limit)| permits.under(limit))
            }
            Mode::Exclusive | Mode::Shared | _ => self.mode,
        }
    }

    /// One of its holds, as operators see it.
    pub(crate) fn shown(&self, now: Moment, hold: &Hold) -> inspect::Held {
        let (holder, mode, slots) = (hold.shown(), self.mode_of(hold), hold.slots.clone());
        let age = hold.note.age(now.since(Moment::ORIGIN));
        inspect::Held { holder, mode, slots, age, remaining: Some(hold.remaining) }
    }
}

impl Hold {
    fn from_row(row: &Row<'_>) -> Result<Self, SqlError> {
        let token = |column| parsed(column, FencingToken::try_from(row.get::<_, i64>(column)?));
        Ok(Self {
            owner: owner(row, 0)?,
            tokens: parsed(1, TokenRange::new(token(1)?, token(2)?))?,
            slots: Slots::NONE,
            note: Stamped::from_wire(row.get_ref(3)?.as_str()?),
            remaining: Duration::from_nanos(unsigned(row.get(4)?)),
        })
    }

    /// From the row of one of several holds.
    pub(crate) fn from_several(row: &Row<'_>) -> Result<Self, SqlError> {
        Ok(Self { slots: slots(row, 5)?, ..Self::from_row(row)? })
    }

    pub(crate) fn shown(&self) -> Holder {
        Holder::Leasehold { tokens: self.tokens, note: self.note.note.clone() }
    }
}

/// A live place in the queue, with all that a hand-over needs, since the waiter is not asked then.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    pub(crate) ttl: Ttl,
    pub(crate) mode: Mode,
    pub(crate) width: Width,
    pub(crate) note: Note,
    pub(crate) remaining: Duration,
}

impl Place {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self, SqlError> {
        let width = Width::for_waiters(usize::try_from(row.get::<_, i64>(2)?).unwrap_or(1));
        Ok(Self {
            owner: owner(row, 0)?,
            ttl: parsed(1, Ttl::new(Duration::from_millis(unsigned(row.get(1)?))))?,
            mode: modes::from_kind(row.get(5)?, width),
            width,
            note: Note::from_wire(row.get_ref(3)?.as_str()?),
            remaining: Duration::from_nanos(unsigned(row.get(4)?)),
        })
    }
}

/// How a lock is held, and whose turn is next.
pub(crate) struct Standing {
    /// `None` if nobody holds it.
    pub(crate) mode: Option<Mode>,
    /// The first in line. Not looked up while one alone holds the lock: nothing fits beside that.
    pub(crate) next: Option<Place>,
}

fn slots(row: &Row<'_>, column: usize) -> Result<Slots, SqlError> {
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
