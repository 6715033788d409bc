//! The least that a lock in a table of MySQL needs: one safe statement for each step, as durable as ours. Waiters ask again and again, as the
//! server notifies nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use bench_measure::{Client, Lock, Plan};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, Params, Statement};
use tokio::sync::{OnceCell, Semaphore};

/// How many connections a process has at most: as many as ours.
const OPEN_MAX: usize = 8;
/// How often each waiter asks: as often as ours does, at most, for all waiters of a process.
const ASKS_EVERY: Duration = Duration::from_millis(2);
const TABLE: &str = "CREATE TABLE IF NOT EXISTS lh (
    name VARBINARY(700) PRIMARY KEY, owner CHAR(32), low BIGINT NOT NULL DEFAULT 0, until BIGINT NOT NULL DEFAULT 0
  ) ENGINE = InnoDB DEFAULT CHARSET = ascii COLLATE = ascii_bin";
const CLAIM: &str = "UPDATE lh SET owner = ?,
    low = LAST_INSERT_ID(GREATEST(low + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))),
    until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + ? WHERE name = ? AND owner IS NULL";
const RELEASE: &str = "UPDATE lh SET owner = NULL WHERE name = ? AND owner = ?";
/// The row of a free lock stays.
const MAKE: &str = "INSERT IGNORE INTO lh (name) VALUES (?)";

/// Whether the plan is about MySQL.
pub(super) fn is_wanted_by(plan: &Plan) -> bool {
    plan.server().is_ok_and(|server| server.starts_with("mysql:"))
}

fn micros(ttl: Duration) -> i64 {
    ttl.as_micros() as i64
}

/// A pair of a thread that has a connection of its own.
pub(super) fn pair(plan: &Plan, name: &str) -> Result<impl FnMut() -> Result<()> + use<>> {
    use mysql::prelude::Queryable as _;
    let options = mysql::OptsBuilder::from_opts(mysql::Opts::from_url(plan.server()?)?);
    let mut connection = mysql::Conn::new(options.prefer_socket(false).tcp_nodelay(true))?;
    connection.query_drop(TABLE)?;
    connection.exec_drop(MAKE, (name,))?;
    let [claim, release] = [connection.prep(CLAIM)?, connection.prep(RELEASE)?];
    let (name, ttl) = (name.to_owned(), micros(plan.ttl));
    Ok(move || {
        let owner = lock_host::new_owner()?.to_wire();
        connection.exec_drop(&claim, (&owner, ttl, &name))?;
        ensure!(connection.affected_rows() == 1, "the lock is held");
        connection.exec_drop(&release, (&name, &owner))?;
        ensure!(connection.affected_rows() == 1, "the lock was lost");
        Ok(())
    })
}

/// A connection, and what it has prepared.
struct Session {
    connection: Conn,
    claim: Statement,
    release: Statement,
}

impl Session {
    async fn open(options: Opts) -> Result<Self> {
        let mut connection = Conn::new(options).await?;
        let [claim, release] = [connection.prep(CLAIM).await?, connection.prep(RELEASE).await?];
        Ok(Self { connection, claim, release })
    }

    /// How many rows a statement changes.
    async fn run(&mut self, statement: Statement, values: impl Into<Params> + Send) -> Result<u64> {
        self.connection.exec_drop(statement, values).await?;
        Ok(self.connection.affected_rows())
    }
}

/// The connections of a process.
pub(super) struct Bare {
    options: Opts,
    idle: Mutex<Vec<Session>>,
    open: Semaphore,
    ttl: i64,
}

/// One lock over them.
pub(super) struct BareLock {
    bare: Arc<Bare>,
    name: String,
    row: OnceCell<()>,
}

/// Clones of this are the client.
pub(super) struct Shared(Arc<Bare>);

impl Bare {
    pub(super) async fn connect(plan: &Plan) -> Result<Shared> {
        // As ours: a socket of this machine is another way than that to a server elsewhere.
        let options = OptsBuilder::from_opts(Opts::from_url(plan.server()?)?).prefer_socket(false).tcp_nodelay(true);
        let options = Opts::from(options);
        let mut first = Conn::new(options.clone()).await?;
        first.query_drop(TABLE).await?;
        let (idle, open) = (Mutex::default(), Semaphore::new(OPEN_MAX));
        Ok(Shared(Arc::new(Self { options, idle, open, ttl: micros(plan.ttl) })))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a step over a connection that nobody else uses meanwhile.
    async fn with<T>(&self, step: impl AsyncFnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let _permit = self.open.acquire().await?;
        let idle = self.idle().pop();
        let mut session = match idle {
            Some(session) => session,
            None => Session::open(self.options.clone()).await?,
        };
        let done = step(&mut session).await?;
        self.idle().push(session);
        Ok(done)
    }
}

impl Client for Shared {
    type Lock = BareLock;

    fn lock(&self, name: &str) -> Result<BareLock> {
        Ok(BareLock { bare: Arc::clone(&self.0), name: name.to_owned(), row: OnceCell::new() })
    }
}

impl BareLock {
    async fn make(&self) -> Result<()> {
        self.bare.with(async |session| Ok(session.connection.exec_drop(MAKE, (&self.name,)).await?)).await
    }

    /// Takes the lock, unless somebody holds it.
    async fn claim(&self, owner: &str) -> Result<bool> {
        let values = (owner, self.bare.ttl, &self.name);
        Ok(self.bare.with(async |session| session.run(session.claim.clone(), values).await).await? == 1)
    }
}

impl Lock for BareLock {
    type Held = String;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<String> {
        self.row.get_or_try_init(|| self.make()).await?;
        let owner = lock_host::new_owner()?.to_wire();
        while !self.claim(&owner).await? {
            tokio::time::sleep(ASKS_EVERY).await;
        }
        Ok(owner)
    }

    async fn release(&self, owner: String) -> Result<()> {
        let values = (&self.name, &owner);
        let released = self.bare.with(async |session| session.run(session.release.clone(), values).await).await?;
        ensure!(released == 1, "the lock was lost");
        Ok(())
    }
}
