//! What a lock in a SQLite file needs at the very least: a transaction for each step, as durable as ours.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench_measure::{Client, Lock, Plan, now};
use rusqlite::Connection;

/// How far apart the tries are while somebody else holds the lock, in milliseconds.
const RETRY_MS: std::ops::RangeInclusive<u64> = 5..=15;
/// How long a transaction may wait for those of other processes.
const BUSY: Duration = Duration::from_secs(5);
/// The settings of `lock-sqlite`: every commit reaches the disk.
const SET_UP: &str = "
PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
CREATE TABLE IF NOT EXISTS locks(name TEXT PRIMARY KEY, owner TEXT NOT NULL, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";
const ACQUIRE: &str = "INSERT INTO locks VALUES (?1, ?2, ?3) ON CONFLICT(name) DO UPDATE
    SET owner = excluded.owner, expires = excluded.expires WHERE expires < ?4";
const RELEASE: &str = "DELETE FROM locks WHERE name = ?1 AND owner = ?2";

/// The file of a plan, if it names one.
pub(super) fn path(plan: &Plan) -> Option<&str> {
    plan.server().ok()?.strip_prefix("sqlite:")
}

/// One connection.
pub(super) struct Bare {
    file: Arc<Mutex<Connection>>,
    ttl: Duration,
}

/// One lock over it.
pub(super) struct BareLock {
    file: Arc<Mutex<Connection>>,
    name: String,
    ttl: Duration,
}

impl Bare {
    #[expect(clippy::unused_async, reason = "subjects connect asynchronously")]
    pub(super) async fn connect(plan: &Plan) -> Result<Self> {
        let file = Connection::open(path(plan).context("the plan names no file")?)?;
        file.busy_timeout(BUSY)?;
        file.execute_batch(SET_UP)?;
        Ok(Self { file: Arc::new(Mutex::new(file)), ttl: plan.ttl })
    }
}

impl Client for Bare {
    type Lock = BareLock;

    fn lock(&self, name: &str) -> Result<BareLock> {
        Ok(BareLock { file: Arc::clone(&self.file), name: name.to_owned(), ttl: self.ttl })
    }
}

impl BareLock {
    /// Runs a statement in a transaction of its own, and returns how many rows it changed. Other tasks have their turn first.
    async fn transact(&self, statement: &str, values: impl rusqlite::Params + Send) -> Result<usize> {
        tokio::task::yield_now().await;
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
        let changed = file.prepare_cached(statement)?.execute(values)?;
        file.prepare_cached("COMMIT")?.execute(())?;
        Ok(changed)
    }
}

impl Lock for BareLock {
    type Held = String;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<String> {
        let owner = lock_host::new_owner()?.to_wire();
        loop {
            let now = now();
            let expires = now + self.ttl.as_nanos() as u64;
            if self.transact(ACQUIRE, (&self.name, &owner, expires as i64, now as i64)).await? == 1 {
                return Ok(owner);
            }
            tokio::time::sleep(Duration::from_millis(fastrand::u64(RETRY_MS))).await;
        }
    }

    async fn release(&self, owner: String) -> Result<()> {
        ensure!(self.transact(RELEASE, (&self.name, &owner)).await? == 1, "the lock was lost");
        Ok(())
    }
}
