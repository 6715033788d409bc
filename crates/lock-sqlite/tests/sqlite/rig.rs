//! What the tests share: a directory, a clock that is moved by hand, and async and blocking clients.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Fairness, Lease, Mode, Moment, NameKind, Note, Queueing,
    Released, Renewed, Terms, Ttl, Width,
};
use lock_host::{ManualClock, new_owner, note};
use lock_sqlite::{SqliteConfig, Timing, blocking, nonblocking};
use rusqlite::Connection;
use tempfile::TempDir;

/// Long enough for any machine; nothing waits for this long unless something is wrong.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

pub(crate) struct Rig {
    pub(crate) directory: TempDir,
    pub(crate) clock: ManualClock,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), clock: ManualClock::new() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("locks.db")
    }

    pub(crate) fn config(&self) -> SqliteConfig {
        SqliteConfig::new(self.path())
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing::with_clock(Arc::new(self.clock.clone()))
    }

    /// A client with a connection of its own, as another process has it.
    pub(crate) fn client(&self) -> blocking::Sqlite {
        blocking::Sqlite::open_with(&self.config(), self.timing()).unwrap()
    }

    pub(crate) fn nonblocking(&self) -> nonblocking::Sqlite {
        nonblocking::Sqlite::open_with(&self.config(), self.timing()).unwrap()
    }

    pub(crate) fn with_prefix(&self, prefix: &str) -> blocking::Sqlite {
        let mut config = self.config();
        config.prefix = prefix.parse().unwrap();
        blocking::Sqlite::open_with(&config, self.timing()).unwrap()
    }

    /// A connection outside of any client, to read the database directly.
    pub(crate) fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    pub(crate) fn rows(&self, table: &str) -> i64 {
        self.raw().query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
    }
}

pub(crate) fn ttl(text: &str) -> Ttl {
    text.parse().unwrap()
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A claim of a new owner that wants a place.
pub(crate) fn claim(name: &str) -> Claim {
    Claim {
        name: name.parse().unwrap(),
        owner: new_owner().unwrap(),
        terms: Terms::exclusive(Ttl::DEFAULT),
        width: Width::ONE,
        floor: None,
        note: note("testing").unwrap(),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

pub(crate) fn impatient(name: &str) -> Claim {
    Claim { queueing: Queueing::Unwanted, ..claim(name) }
}

/// A claim for a shared lease that wants a place.
pub(crate) fn reader(name: &str) -> Claim {
    Claim { terms: Terms { mode: Mode::Shared, ttl: Ttl::DEFAULT }, ..claim(name) }
}

/// A claim for permits that wants a place.
pub(crate) fn permits(name: &str, count: u32, limit: u32) -> Claim {
    let mode = Mode::permits(count, limit).unwrap();
    let width = Width::for_waiters(usize::try_from(count).unwrap());
    Claim { terms: Terms { mode, ttl: Ttl::DEFAULT }, width, ..claim(name) }
}

/// The same claim for another ttl.
pub(crate) fn lasting(time: &str, claim: Claim) -> Claim {
    Claim { terms: Terms { ttl: ttl(time), ..claim.terms }, ..claim }
}

/// The same claim, which wants no place.
pub(crate) fn at_once(claim: Claim) -> Claim {
    Claim { queueing: Queueing::Unwanted, ..claim }
}

/// The verbs with what the tests do not care about left out.
pub(crate) trait Ask {
    fn ask(&self, claim: &Claim) -> Answer;
    fn part(&self, claim: &Claim) -> Released;
    fn extend(&self, lease: &Lease) -> Renewed;
    fn refusal(&self, claim: &Claim) -> BackendError;
}

impl Ask for blocking::Sqlite {
    fn ask(&self, claim: &Claim) -> Answer {
        self.acquire(claim, WITHIN).unwrap()
    }

    fn part(&self, claim: &Claim) -> Released {
        self.release(&claim.release(Certainty::Answered), WITHIN).unwrap()
    }

    fn extend(&self, lease: &Lease) -> Renewed {
        self.renew(std::slice::from_ref(lease), WITHIN).unwrap().swap_remove(0)
    }

    fn refusal(&self, claim: &Claim) -> BackendError {
        self.acquire(claim, WITHIN).unwrap_err()
    }
}

#[track_caller]
pub(crate) fn granted(answer: Answer) -> Lease {
    match answer {
        Answer::Granted { lease, .. } => lease,
        other @ (Answer::Queued { .. } | Answer::Busy { .. }) => panic!("not granted: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn position(answer: Answer) -> u32 {
    match answer {
        Answer::Queued { position, .. } => position,
        other @ (Answer::Granted { .. } | Answer::Busy { .. }) => panic!("not queued: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn busy(answer: Answer) -> Duration {
    match answer {
        Answer::Busy { remaining, .. } => remaining.unwrap(),
        other @ (Answer::Granted { .. } | Answer::Queued { .. }) => panic!("not busy: {other:?}"),
    }
}

pub(crate) fn low(lease: &Lease) -> u64 {
    lease.tokens.low().get()
}

/// The file knows of each semaphore how many permits its leases have, which slots, and behind which of them a slot is free. Of leases
/// that have expired at this time and are still there, it may have forgotten slots that were taken since.
#[track_caller]
pub(crate) fn assert_slots(db: &Connection, now: Moment) {
    let now = i64::try_from(now.as_nanos()).unwrap();
    let rows = |sql: &str| -> Vec<(String, String, i64)> {
        let mut rows = db.prepare(sql).unwrap();
        rows.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap().map(Result::unwrap).collect()
    };
    let count = "SELECT name, '', count(*) FROM holds, json_each('[' || slots || ']') GROUP BY name ORDER BY name";
    assert_eq!(rows("SELECT name, '', value FROM permits WHERE kind = 0 ORDER BY name"), rows(count));
    let taken = rows("SELECT name, value, slot FROM permits WHERE kind = 1");
    let held = |after: i64| {
        rows(&format!(
            "SELECT name, owner, value FROM holds, json_each('[' || slots || ']') WHERE expires_ns > {after}"
        ))
    };
    assert!(held(now).iter().all(|slot| taken.contains(slot)), "a slot that is held is not taken");
    assert!(taken.iter().all(|slot| held(-1).contains(slot)), "a slot is taken that nobody holds");
    let marked = rows("SELECT name, '', slot FROM permits WHERE kind = 2 ORDER BY name, slot");
    let before_free = "SELECT name, '', slot FROM permits AS taken WHERE kind = 1 AND NOT EXISTS (
        SELECT 1 FROM permits AS next WHERE next.name = taken.name AND next.kind = 1 AND next.slot = taken.slot + 1
    ) ORDER BY name, slot";
    assert_eq!(marked, rows(before_free));
}

/// Who ends the leases of others.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}
