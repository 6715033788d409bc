//! Leases of another boot: left from before a reboot, or written by a container that has mounted a boot id of its own.
//!
//! LXC, Incus and systemd-nspawn give each container its own boot id, but the clock stays the machine's. So an id alone proves nothing. A time
//! that is ahead of the clock does, unless another machine may have written it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lock_core::{BackendError, ErrorKind, Moment, Operation, Stamped};
use lock_host::since_1970;
use lock_rules::PLACE_MAX;
use rusqlite::{Connection, Row, TransactionBehavior, named_params};

use crate::error::{Fault, explain_io, refusal};
use crate::network::{Writers, writers_of};
use crate::settings::Settings;
use crate::timing::NO_BOOT;
use crate::wire::{nanos, unsigned};

/// The living rows of other boots: when each was written, if its table says so, until when it lasts, and its note if that may have a time.
/// A place lasts from its last refreshing, for a time that it tells.
const OF_OTHERS: &str = "SELECT * FROM (
    SELECT boot, expires_ns AS until, written_ns, note FROM locks
    UNION ALL SELECT boot, expires_ns, written_ns, note FROM holds
    UNION ALL SELECT boot, expires_ns, expires_ns - min(ttl_ms * 1000000, :place_max), '' FROM queue
    UNION ALL SELECT boot, expires_ns, 0, '' FROM tombstones
    UNION ALL SELECT boot, expires_ns, 0, '' FROM latches
    UNION ALL SELECT boot, expires_ns, 0, '' FROM limits
    UNION ALL SELECT boot, expires_ns, 0, '' FROM revocations
) WHERE boot <> :boot AND until > :now";

const TABLES: [&str; 7] = ["locks", "holds", "queue", "tombstones", "latches", "limits", "revocations"];

/// What the rows of another boot tell about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traces {
    /// The last write that is known, which is at or before the real one. `None` if the rows tell none.
    written: Option<Moment>,
    /// When the last of them ends.
    until: Moment,
}

/// What this machine knows of itself, read after the traces.
#[derive(Clone, Copy, Debug)]
struct Here {
    now: Moment,
    wall: Moment,
    writers: Writers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The machine was started anew since: what it left has ended.
    Over,
    /// It may be this very boot under another name: what it left lasts as long as it says.
    MayGoOn,
    /// Its clock cannot be compared with ours.
    Unknown(Why),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    AnotherMachine,
    WallClock,
}

/// Whether another boot than ours is over.
fn judge(boot: &str, traces: Traces, here: Here) -> Verdict {
    if boot == NO_BOOT {
        return if traces.until > here.wall { Verdict::Unknown(Why::WallClock) } else { Verdict::Over };
    }
    let is_ahead = traces.written.is_some_and(|written| written > here.now);
    match (is_ahead, here.writers) {
        (false, _) => Verdict::MayGoOn,
        (true, Writers::ThisKernel) => Verdict::Over,
        (true, Writers::Unknown) => Verdict::Unknown(Why::AnotherMachine),
    }
}

/// Ends what boots that are over have left in the file.
///
/// # Errors
/// `Config` if somebody may still hold by a clock that cannot be compared with ours, and those of SQLite.
pub(crate) fn end_past_ones(db: &Connection, settings: &Settings, main: &Path) -> Result<(), Fault> {
    let others = others(db, settings)?;
    if others.is_empty() {
        return Ok(());
    }
    let writers = writers_of(main).map_err(|error| explain_io(Operation::Connect, &settings.path, error))?;
    // Read after the rows: what was written meanwhile must not look as if it came from the future.
    let here = Here { now: settings.timing.now(), wall: Moment::ORIGIN + since_1970(), writers };
    for (boot, traces) in others {
        match judge(&boot, traces, here) {
            Verdict::Over => end(db, &boot)?,
            Verdict::MayGoOn => {}
            Verdict::Unknown(why) => return Err(refused(&settings.path, why).into()),
        }
    }
    Ok(())
}

fn others(db: &Connection, settings: &Settings) -> rusqlite::Result<BTreeMap<String, Traces>> {
    let mut statement = db.prepare(OF_OTHERS)?;
    let params = named_params! {
        ":boot": settings.timing.boot(), ":now": nanos(settings.timing.now()),
        ":place_max": nanos(Moment::ORIGIN + PLACE_MAX),
    };
    let mut others = BTreeMap::<String, Traces>::new();
    for found in statement.query_map(params, |row| Ok((row.get(0)?, traces(row)?)))? {
        let (boot, row) = found?;
        let traces = others.entry(boot).or_insert(row);
        *traces = Traces { written: traces.written.max(row.written), until: traces.until.max(row.until) };
    }
    Ok(others)
}

/// A row that an older program wrote has the time of its grant at most.
fn traces(row: &Row<'_>) -> rusqlite::Result<Traces> {
    let granted = Stamped::from_wire(row.get_ref(3)?.as_str()?).granted();
    let written = Duration::from_nanos(unsigned(row.get(2)?)).max(granted.unwrap_or_default());
    let until = Moment::from_nanos(unsigned(row.get(1)?));
    Ok(Traces { written: (!written.is_zero()).then(|| Moment::ORIGIN + written), until })
}

/// A boot that is over writes nothing more, so this needs no look at what was judged.
fn end(db: &Connection, boot: &str) -> rusqlite::Result<()> {
    let transaction = rusqlite::Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    for table in TABLES {
        transaction.execute(&format!("UPDATE {table} SET expires_ns = 0 WHERE boot = ?1"), [boot])?;
    }
    transaction.commit()
}

fn refused(path: &Path, why: Why) -> BackendError {
    let file = path.display();
    let (message, remedy) = match why {
        Why::AnotherMachine => (
            format!(
                "{file} has leases that another boot or another machine wrote, and its file system does not tell which"
            ),
            "choose a path on a local disk; or, if only this machine uses the file, end all that use it and delete it",
        ),
        Why::WallClock => (
            format!(
                "{file} has leases of a program that times them by the wall clock, because it cannot read the boot id"
            ),
            "end that program, update it and mount /proc for it, and try again once its leases have expired",
        ),
    };
    refusal(Operation::Connect, ErrorKind::Config, message).with_remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(seconds)
    }

    const OTHER: &str = "11111111-2222-3333-4444-555555555555";
    const NOW: u64 = 1000;
    const WALL: u64 = 1_700_000_000;

    /// Boot, last write, end, who writes to the file system, and what follows.
    const TABLE: [(&str, Option<u64>, u64, Writers, Verdict); 9] = [
        (OTHER, Some(NOW + 1), NOW + 30, Writers::ThisKernel, Verdict::Over),
        (OTHER, Some(NOW + 1), NOW + 30, Writers::Unknown, Verdict::Unknown(Why::AnotherMachine)),
        (OTHER, Some(NOW), NOW + 30, Writers::ThisKernel, Verdict::MayGoOn),
        (OTHER, Some(NOW - 9), NOW + 30, Writers::ThisKernel, Verdict::MayGoOn),
        (OTHER, Some(NOW - 9), NOW + 30, Writers::Unknown, Verdict::MayGoOn),
        (OTHER, None, NOW + 9_000_000, Writers::ThisKernel, Verdict::MayGoOn),
        (OTHER, None, NOW + 30, Writers::Unknown, Verdict::MayGoOn),
        (NO_BOOT, Some(WALL - 9), WALL + 30, Writers::ThisKernel, Verdict::Unknown(Why::WallClock)),
        (NO_BOOT, Some(WALL - 39), WALL - 9, Writers::ThisKernel, Verdict::Over),
    ];

    /// Which row of the table a rule contradicts.
    fn contradicted(rule: impl Fn(&str, Traces, Here) -> Verdict) -> Option<usize> {
        TABLE.iter().position(|(boot, written, until, writers, expected)| {
            let traces = Traces { written: written.map(at), until: at(*until) };
            rule(boot, traces, Here { now: at(NOW), wall: at(WALL), writers: *writers }) != *expected
        })
    }

    #[test]
    fn another_boot_is_over_only_if_its_clock_was_ahead_on_a_disk_of_this_kernel() {
        assert_eq!(contradicted(judge), None);
    }

    #[test]
    fn the_table_rejects_rules_that_believe_too_much() {
        let any_other_id = |_: &str, _: Traces, _: Here| Verdict::Over;
        let any_disk = |boot: &str, traces, here| judge(boot, traces, Here { writers: Writers::ThisKernel, ..here });
        let unknown_is_ahead = |boot: &str, traces: Traces, here: Here| {
            judge(boot, Traces { written: traces.written.or(Some(traces.until)), ..traces }, here)
        };
        let no_wall_clock = |_: &str, traces, here| judge(OTHER, traces, here);
        assert_eq!(contradicted(any_other_id), Some(1));
        assert_eq!(contradicted(any_disk), Some(1));
        assert_eq!(contradicted(unknown_is_ahead), Some(5));
        assert_eq!(contradicted(no_wall_clock), Some(7));
    }
}
