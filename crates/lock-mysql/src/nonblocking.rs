//! The store for tokio.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{Ability, BackendError, Capabilities, Durability, Effect, ErrorKind, ModeKind, Prefix, Waiting};
use lock_sql::{Database, Notifications};
pub use mysql_async::Pool;

use crate::MysqlConfig;
use crate::connect::Connector;
use crate::error::{self, BACKEND};
use crate::held::Held;
use crate::source::Source;
use crate::version::Version;

/// The database and its server.
const IDENTITY: &str =
    "SELECT CONCAT(DATABASE(), ' of the server ', @@hostname, ':', @@port, ' with the id ', @@server_id)";

/// A database, and the connections of one client: one while it is idle, one more while leases are renewed, and up to eight while requests
/// overlap.
#[derive(Clone)]
pub struct Mysql {
    pool: Arc<lock_sql::Pool<Connector>>,
    source: Source,
    /// Warnings about the server that it was connected to.
    warnings: Vec<String>,
}

/// One async client. Its connections belong to the runtime that it is used from.
pub type Store = lock_sql::Store<Mysql>;

/// Connects, and makes the tables if they are missing and this account may.
///
/// # Errors
/// `Unreachable` if no server answers; `Unavailable` if none of them accepts writes; `Denied` for a wrong user or password, and if the
/// tables are missing and this account may not make them; `Config` for an unknown database, a certificate that is not trusted, a server with
/// several primaries, and tables of another version.
///
/// # Cancel safety
/// Can be dropped at any point. The tables may have been made.
pub async fn connect(config: &MysqlConfig) -> Result<Store, BackendError> {
    over(Source::Own, config).await
}

/// The same, with requests over your own pool. The client's own connections to the servers of the configuration poll for waiters, renew
/// leases and release locks, however busy the pool is.
///
/// # Errors
/// As [`connect`]; `Config` if the pool leads to another server or database than the configuration.
///
/// # Cancel safety
/// As [`connect`].
pub async fn pooled(pool: Pool, config: &MysqlConfig) -> Result<Store, BackendError> {
    over(Source::Pool(pool), config).await
}

pub(crate) async fn over(source: Source, config: &MysqlConfig) -> Result<Store, BackendError> {
    let mut database = Mysql::new(source, config);
    database.warnings = database.check().await?;
    Ok(Store::new(database))
}

impl Mysql {
    fn new(source: Source, config: &MysqlConfig) -> Self {
        let kept = if matches!(source, Source::Own) { 1 } else { 0 };
        Self {
            pool: lock_sql::Pool::keeping(kept, Arc::new(Connector { config: config.clone() })),
            source,
            warnings: Vec::new(),
        }
    }

    fn config(&self) -> &MysqlConfig {
        &self.pool.connector().config
    }

    /// Connects, and makes sure that all connections lead to one database. Returns warnings about the server.
    async fn check(&self) -> Result<Vec<String>, BackendError> {
        let mut lent = self.lend().await?;
        let version = lent.ask("SELECT VERSION()").await?.unwrap_or_default();
        let warnings = Version::of(&version).untested().map(|warning| format!("{warning}; {}", Version::REMEDY));
        if matches!(self.source, Source::Own) {
            return Ok(warnings.into_iter().collect());
        }
        let mut own = self.for_waiters().lend().await?;
        let [here, there] = [lent.ask(IDENTITY).await?, own.ask(IDENTITY).await?].map(Option::unwrap_or_default);
        if here == there {
            return Ok(warnings.into_iter().collect());
        }
        let message = format!("the pool leads to {here}, and the URL to {there}");
        Err(error::new(ErrorKind::Config, Effect::None, message).with_remedy("let both name the same database"))
    }
}

impl Database for Mysql {
    const BACKEND: &'static str = BACKEND;
    /// Chosen: a hand-over by polling more often is no faster than this on one machine.
    const TICK: Duration = Duration::from_millis(2);
    type Connection = Held;

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::ClockFloor)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_abilities(Ability::ALL)
    }

    fn place(&self) -> String {
        self.config().address.place()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn prefix(&self) -> &Prefix {
        self.config().address.prefix()
    }

    async fn lend(&self) -> Result<Held, BackendError> {
        Ok(Held::new(Arc::clone(&self.pool), self.source.lend(&self.pool).await?))
    }

    fn for_waiters(&self) -> Self {
        Self { pool: Arc::clone(&self.pool), source: Source::Own, warnings: Vec::new() }
    }

    fn for_keeper(&self) -> Self {
        Self {
            pool: lock_sql::Pool::keeping(0, Arc::clone(self.pool.connector())),
            source: Source::Own,
            warnings: Vec::new(),
        }
    }

    /// These servers notify nobody.
    async fn listen(&self, _channel: &str) -> Result<Option<Notifications>, BackendError> {
        Ok(None)
    }
}

impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mysql").field(self.config()).finish()
    }
}
