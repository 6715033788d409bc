//! What a lock in a SQLite file needs at the very least: a transaction for each step, as durable as ours.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench_measure::{Client, Lock, Plan, now};
use rusqlite::{Connection, Params};

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

fn open(plan: &Plan) -> Result<Connection> {
    let file = Connection::open(path(plan).context("the plan names no file")?)?;
    file.busy_timeout(BUSY)?;
    file.execute_batch(SET_UP)?;
    Ok(file)
}

/// Runs a statement in a transaction of its own, and returns how many rows it changed.
fn transact(file: &Connection, statement: &str, values: impl Params) -> Result<usize> {
    file.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
    let changed = file.prepare_cached(statement)?.execute(values)?;
    file.prepare_cached("COMMIT")?.execute(())?;
    Ok(changed)
}

/// Takes a lock, unless somebody holds it.
fn take(file: &Connection, name: &str, owner: &str, ttl: Duration) -> Result<bool> {
    let (now, ttl) = (now() as i64, ttl.as_nanos() as i64);
    Ok(transact(file, ACQUIRE, (name, owner, now + ttl, now))? == 1)
}

fn release(file: &Connection, name: &str, owner: &str) -> Result<()> {
    ensure!(transact(file, RELEASE, (name, owner))? == 1, "the lock was lost");
    Ok(())
}

/// A pair of a thread that has a connection of its own.
pub(super) fn pair(plan: &Plan, name: &str) -> Result<impl FnMut() -> Result<()> + use<>> {
    let (file, name, ttl) = (open(plan)?, name.to_owned(), plan.ttl);
    Ok(move || {
        let owner = lock_host::new_owner()?.to_wire();
        ensure!(take(&file, &name, &owner, ttl)?, "the lock is held");
        release(&file, &name, &owner)
    })
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
        Ok(Self { file: Arc::new(Mutex::new(open(plan)?)), ttl: plan.ttl })
    }
}

impl Client for Bare {
    type Lock = BareLock;

    fn lock(&self, name: &str) -> Result<BareLock> {
        Ok(BareLock { file: Arc::clone(&self.file), name: name.to_owned(), ttl: self.ttl })
    }
}

impl BareLock {
    /// The file. Other tasks have their turn first.
    async fn file(&self) -> MutexGuard<'_, Connection> {
        tokio::task::yield_now().await;
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lock for BareLock {
    type Held = String;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<String> {
        let owner = lock_host::new_owner()?.to_wire();
        while !take(&*self.file().await, &self.name, &owner, self.ttl)? {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(RETRY_MS))).await;
        }
        Ok(owner)
    }

    async fn release(&self, owner: String) -> Result<()> {
        release(&*self.file().await, &self.name, &owner)
    }
}
