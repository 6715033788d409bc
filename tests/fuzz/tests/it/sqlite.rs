//! Rows of a file that something else has written to.

use std::time::Duration;

use fuzz::inputs::{like, number, text};
use fuzz::{fuzz, is_presentable};
use lock_core::inspect::Query;
use lock_core::{
    Answer, BackendError, BlockingBackend, Claim, Fairness, Lease, Mode, NameKind, Note, Owner, Queueing, Terms, Ttl,
    Width, latch, limit,
};
use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;
use rusqlite::Connection;
use rusqlite::types::Value;

const WITHIN: Duration = Duration::from_secs(20);

/// Every column that is read, and how often a table is filled.
const NUMBERS: &[(&str, &str)] = &[
    ("locks", "low"),
    ("locks", "high"),
    ("locks", "expires_ns"),
    ("holds", "low"),
    ("holds", "high"),
    ("holds", "expires_ns"),
    ("queue", "ttl_ms"),
    ("queue", "width"),
    ("queue", "kind"),
    ("queue", "expires_ns"),
    ("queue", "place"),
    ("counter", "last"),
    ("latches", "generation"),
    ("latches", "expected"),
    ("latches", "arrived"),
    ("latches", "completed"),
    ("latches", "expires_ns"),
    ("limits", "expires_ns"),
    ("permits", "kind"),
    ("permits", "slot"),
    ("permits", "value"),
];
const TEXTS: &[(&str, &str)] = &[
    ("locks", "owner"),
    ("locks", "note"),
    ("holds", "owner"),
    ("holds", "slots"),
    ("holds", "note"),
    ("queue", "owner"),
    ("queue", "note"),
    ("limits", "record"),
];
const EXAMPLES: &[&str] = &[
    "00000000000000000000000000000000",
    "00000000000000000000000000000008",
    "abababababababababababababababab",
    "4711@web-3 nightly",
    "0,2,3",
    "8 4",
];

fn claim(name: &str, byte: u8, mode: Mode) -> Claim {
    Claim {
        name: name.parse().unwrap(),
        owner: Owner::from_random([byte; 16]),
        terms: Terms { mode, ttl: Ttl::MAX },
        width: Width::ONE,
        floor: None,
        note: Note::new("h", 1, "fuzz").unwrap(),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

/// A lock of each kind that is held and waited for, and a latch.
fn claims() -> Vec<Claim> {
    let of = |name, mode, count: u8| (0..count).map(move |byte| claim(name, byte + 1, mode));
    let permit = Mode::permits(1, 2).unwrap();
    of("a", Mode::Exclusive, 2).chain(of("r", Mode::Shared, 2)).chain(of("p", permit, 4)).collect()
}

fn latch(act: latch::Act) -> latch::Request {
    latch::Request { name: "l".parse().unwrap(), act }
}

/// Asks for everything that is read from a row. What is refused is presentable.
fn read_all(store: &Sqlite, leases: &[Lease]) -> TestCaseResult {
    let known = lock_core::Limit::new(2).unwrap();
    let limit = limit::Request { name: "p".parse().unwrap(), known, act: limit::Act::Look };
    let presentable =
        |refused: Option<BackendError>| refused.map_or(Ok(()), |error| is_presentable(&error.to_string()));
    presentable(store.list(&Query::all(), WITHIN).err())?;
    presentable(store.limit(&limit, WITHIN).err())?;
    presentable(store.latch(&latch(latch::Act::Look { watching: latch::Watching::Unwanted }), WITHIN).err())?;
    presentable(store.renew(leases, WITHIN).err())?;
    for lease in leases {
        presentable(store.holder(&lease.name, WITHIN).err())?;
        presentable(store.fence(lease, WITHIN).err())?;
    }
    for claim in claims() {
        presentable(store.acquire(&claim, WITHIN).err())?;
    }
    Ok(())
}

#[test]
fn rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let store = Sqlite::open(&SqliteConfig::new(&path)).unwrap();
    let granted = |claim: &Claim| {
        let answer = store.acquire(claim, WITHIN).unwrap();
        if let Answer::Granted { lease, .. } = answer { Some(lease) } else { None }
    };
    let leases: Vec<Lease> = claims().iter().filter_map(granted).collect();
    let limit = lock_core::Limit::new(3).unwrap();
    let request = limit::Request { name: "p".parse().unwrap(), known: limit, act: limit::Act::Set(limit) };
    _ = store.limit(&request, WITHIN);
    store.latch(&latch(latch::Act::Make { ttl: Ttl::MAX }), WITHIN).unwrap();
    let other = Other::beside(&path);
    let numbers = (select(NUMBERS), number().prop_map(Value::Integer));
    let texts = (select(TEXTS), prop_oneof![like(EXAMPLES), text()].prop_map(Value::Text));
    fuzz(prop::collection::vec(prop_oneof![numbers, texts], 1..4), |changes| {
        other.write(&changes);
        read_all(&store, &leases)
    });
}

/// Another program that writes to the file.
struct Other(Connection);

const TABLES: [&str; 7] = ["locks", "holds", "queue", "counter", "latches", "limits", "permits"];

impl Other {
    /// Keeps what the file has now.
    fn beside(path: &std::path::Path) -> Self {
        let db = Connection::open(path).unwrap();
        db.execute_batch("PRAGMA synchronous = OFF; ATTACH ':memory:' AS kept").unwrap();
        for table in TABLES {
            db.execute_batch(&format!("CREATE TABLE kept.{table} AS SELECT * FROM main.{table}")).unwrap();
        }
        Self(db)
    }

    /// What was kept is in the file again, with these changes. One that the file does not allow is left out.
    fn write(&self, changes: &[((&str, &str), Value)]) {
        self.0.execute_batch("BEGIN IMMEDIATE; DELETE FROM tombstones").unwrap();
        for table in TABLES {
            let refill = format!("DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM kept.{table}");
            self.0.execute_batch(&refill).unwrap();
        }
        for ((table, column), value) in changes {
            _ = self.0.execute(&format!("UPDATE main.{table} SET {column} = ?1"), [value]);
        }
        self.0.execute_batch("COMMIT").unwrap();
    }
}
