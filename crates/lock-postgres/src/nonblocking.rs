//! The store for tokio.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{Ability, BackendError, Capabilities, Durability, Effect, ErrorKind, ModeKind, Prefix, Waiting};
use lock_sql::{Database, Notifications, Pool};

use crate::PostgresConfig;
use crate::connect::Connector;
use crate::error::{self, BACKEND};
use crate::held::Held;
use crate::source::Source;

/// The database and its server.
const IDENTITY: &str = "SELECT concat(current_database(), $1::text, ' of the server that started at ', extract(epoch FROM pg_postmaster_start_time()))";

/// A database, and the connections of one client: one while it is idle, one more each while somebody waits and while leases are renewed, and
/// up to eight while requests overlap.
#[derive(Clone)]
pub struct Postgres {
    pool: Arc<Pool<Connector>>,
    source: Source,
}

/// One async client. Its connections belong to the runtime that it is used from.
pub type Store = lock_sql::Store<Postgres>;

/// Connects, and makes the tables if they are missing and this role may.
///
/// # Errors
/// `Unreachable` if no server answers; `Unavailable` if none of them accepts writes; `Denied` for a wrong user or password, and if the
/// tables are missing and this role may not make them; `Config` for an unknown database, a certificate that is not trusted, and
/// tables of another version.
///
/// # Cancel safety
/// Can be dropped at any point. The tables may have been made.
pub async fn connect(config: &PostgresConfig) -> Result<Store, BackendError> {
    over(Source::Own, config).await
}

/// The same, with requests over your own pool. The client's own connections to the servers of the configuration notify waiters, renew
/// leases and release locks, however busy the pool is.
///
/// # Errors
/// As [`connect`]; `Config` if the pool leads to another server or database than the configuration.
///
/// # Cancel safety
/// As [`connect`].
#[cfg(feature = "deadpool")]
pub async fn pooled(pool: deadpool_postgres::Pool, config: &PostgresConfig) -> Result<Store, BackendError> {
    over(Source::Deadpool(pool), config).await
}

pub(crate) async fn over(source: Source, config: &PostgresConfig) -> Result<Store, BackendError> {
    let database = Postgres::new(source, config);
    database.check().await?;
    Ok(Store::new(database))
}

impl Postgres {
    fn new(source: Source, config: &PostgresConfig) -> Self {
        let kept = if matches!(source, Source::Own) { 1 } else { 0 };
        Self { pool: Pool::keeping(kept, Arc::new(Connector::new(config))), source }
    }

    fn config(&self) -> &PostgresConfig {
        &self.pool.connector().config
    }

    /// Connects, and makes sure that all connections lead to one database.
    async fn check(&self) -> Result<(), BackendError> {
        let mut lent = self.lend().await?;
        if matches!(self.source, Source::Own) {
            return Ok(());
        }
        let mut own = self.for_waiters().lend().await?;
        let [here, there] =
            [lent.ask(IDENTITY, "").await?, own.ask(IDENTITY, "").await?].map(Option::unwrap_or_default);
        if here == there {
            return Ok(());
        }
        let message = format!("the pool leads to {here}, and the URL to {there}");
        Err(error::new(ErrorKind::Config, Effect::None, message).with_remedy("let both name the same database"))
    }
}

impl Database for Postgres {
    const BACKEND: &'static str = BACKEND;
    /// Chosen: some round trips in a network.
    const TICK: Duration = Duration::from_millis(10);
    type Connection = Held;

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::ClockFloor)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_abilities(Ability::ALL)
    }

    fn place(&self) -> String {
        let config = self.config();
        format!("{}#{}", config.address.place(), config.schema)
    }

    fn prefix(&self) -> &Prefix {
        self.config().address.prefix()
    }

    async fn lend(&self) -> Result<Held, BackendError> {
        Ok(Held::new(Arc::clone(&self.pool), self.source.lend(&self.pool).await?))
    }

    fn for_waiters(&self) -> Self {
        Self { pool: Arc::clone(&self.pool), source: Source::Own }
    }

    fn for_keeper(&self) -> Self {
        Self { pool: Pool::keeping(0, Arc::clone(self.pool.connector())), source: Source::Own }
    }

    async fn listen(&self, channel: &str) -> Result<Option<Notifications>, BackendError> {
        let (client, texts) = lock_sql::connect(&**self.pool.connector()).await?;
        let failed = |failure| error::of(failure, Effect::None);
        client.batch_execute(&format!("LISTEN {channel}")).await.map_err(failed)?;
        // Over another connection: a session always hears itself.
        self.lend().await?.ask(&format!("SELECT pg_notify('{channel}', $1::text)::text"), "").await?;
        Ok(Some(Notifications { texts, connection: Box::new(client) }))
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(self.config()).finish()
    }
}
