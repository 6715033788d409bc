//! The connections of one client: few while it is idle, more while requests overlap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::PostgresConfig;
use crate::connect::Connector;
use crate::error;
use crate::held::Held;
#[cfg(feature = "r2d2")]
use crate::held::OnThread;
use crate::idle::{IDLE_FOR, Idle};
use crate::schema;

/// How many requests run at once; the others wait. Chosen: enough that commits share a flush of the disk, and few for a server with a hundred
/// connections.
const OPEN_MAX: usize = 8;
/// How long finding or making the schema may take.
const PREPARED_WITHIN: Duration = Duration::from_secs(5);

/// Hands out connections, one request each.
pub(crate) struct Pool {
    connector: Arc<Connector>,
    source: Source,
    open: Arc<Semaphore>,
    /// Whether the schema was found to be as this client needs it.
    is_prepared: AtomicBool,
}

/// Where connections come from.
pub(crate) enum Source {
    /// The client opens them.
    Own(Idle),
    /// A pool of the user's lends them.
    #[cfg(feature = "deadpool")]
    Deadpool(deadpool_postgres::Pool),
    /// The same, for threads.
    #[cfg(feature = "r2d2")]
    R2d2(Arc<dyn Fn() -> Result<OnThread, r2d2::Error> + Send + Sync>),
}

/// A connection for one request. It is closed, and not given back, if the request is dropped before its answer.
pub(crate) struct Lent<'a> {
    pool: &'a Arc<Pool>,
    held: Option<Held>,
    is_busy: bool,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    /// Opens connections when they are needed, and keeps this many of them although nobody uses them.
    pub(crate) fn own(connector: Arc<Connector>, kept: usize) -> Arc<Self> {
        Self::of(connector, Source::Own(Idle::keeping(kept)))
    }

    pub(crate) fn of(connector: Arc<Connector>, source: Source) -> Arc<Self> {
        let (open, is_prepared) = (Arc::new(Semaphore::new(OPEN_MAX)), AtomicBool::new(false));
        Arc::new(Self { connector, source, open, is_prepared })
    }

    pub(crate) fn config(&self) -> &PostgresConfig {
        &self.connector.config
    }

    pub(crate) fn connector(&self) -> &Arc<Connector> {
        &self.connector
    }

    pub(crate) async fn lend(self: &Arc<Self>) -> Result<Lent<'_>, BackendError> {
        let closed = |_| error::new(ErrorKind::Unreachable, Effect::None, "the client is closed");
        let mut permit = Arc::clone(&self.open).acquire_owned().await.map_err(closed)?;
        let held = match &self.source {
            Source::Own(idle) => Held::Own(match idle.take() {
                Some(client) => client,
                None => self.open(&mut permit).await?,
            }),
            #[cfg(feature = "deadpool")]
            Source::Deadpool(pool) => {
                self.prepare(&mut permit).await?;
                Held::Deadpool(pool.get().await.map_err(|failure| error::of_pool(&failure))?)
            }
            #[cfg(feature = "r2d2")]
            Source::R2d2(get) => {
                self.prepare(&mut permit).await?;
                let get = Arc::clone(get);
                let lent =
                    tokio::task::spawn_blocking(move || get()).await.map_err(|failure| error::of_pool(&failure))?;
                Held::R2d2(Some(lent.map_err(|failure| error::of_pool(&failure))?))
            }
        };
        Ok(Lent { pool: self, held: Some(held), is_busy: false, _permit: permit })
    }

    /// Opens a connection in a task of its own: a request with little time does not have to begin again and again. The task has the permit
    /// meanwhile, so a client whose requests time out does not log in ever more often.
    async fn open(self: &Arc<Self>, permit: &mut OwnedSemaphorePermit) -> Result<Client, BackendError> {
        let (pool, (tell, told)) = (Arc::clone(self), oneshot::channel());
        let lent = permit.split(1);
        tokio::spawn(async move {
            if let Err((Ok(client), _)) = tell.send((pool.open_now().await, lent)) {
                pool.give_back(client);
            }
        });
        let ended = |_| error::new(ErrorKind::Unreachable, Effect::None, "the runtime of this client has ended");
        let (opened, lent) = told.await.map_err(ended)?;
        lent.into_iter().for_each(|lent| permit.merge(lent));
        opened
    }

    async fn open_now(&self) -> Result<Client, BackendError> {
        let (mut client, _) = self.connector.connect().await?;
        if !self.is_prepared.load(Ordering::Acquire) {
            let late = |_| Err(error::new(ErrorKind::Unavailable, Effect::None, "the schema was not shown in time"));
            timeout(PREPARED_WITHIN, schema::prepare(&mut client, self.config())).await.unwrap_or_else(late)?;
            self.is_prepared.store(true, Ordering::Release);
        }
        Ok(client)
    }

    /// Connections for what must not wait for a busy pool of the user's.
    pub(crate) fn of_waiters(self: &Arc<Self>) -> Arc<Self> {
        match self.source.own() {
            Some(_) => Arc::clone(self),
            None => Self::own(Arc::clone(&self.connector), 0),
        }
    }

    /// Connects, and makes sure that all connections lead to one database.
    pub(crate) async fn check(self: &Arc<Self>) -> Result<(), BackendError> {
        let mut lent = self.lend().await?;
        if self.source.own().is_some() {
            return Ok(());
        }
        let (own, _) = self.connector.connect().await?;
        let [here, there] = [
            lent.identity().await?,
            Held::Own(own)
                .query(IDENTITY, "")
                .await
                .map(identity_of)
                .map_err(|error| error::of(error, Effect::None))?,
        ];
        if here == there {
            return Ok(());
        }
        let message = format!("the pool leads to {here}, and the URL to {there}");
        Err(error::new(ErrorKind::Config, Effect::None, message).with_remedy("let both name the same database"))
    }

    /// Makes sure that the schema is there, over a connection of its own.
    #[cfg(any(feature = "deadpool", feature = "r2d2"))]
    async fn prepare(self: &Arc<Self>, permit: &mut OwnedSemaphorePermit) -> Result<(), BackendError> {
        if !self.is_prepared.load(Ordering::Acquire) {
            drop(self.open(permit).await?);
        }
        Ok(())
    }

    /// The schema has gone. The next request makes it again.
    fn forget_schema(&self) {
        self.is_prepared.store(false, Ordering::Release);
        if let Some(idle) = self.source.own() {
            idle.clear();
        }
    }

    fn give_back(self: &Arc<Self>, client: Client) {
        let Some(idle) = self.source.own() else { return };
        if idle.put(client) {
            self.close_later();
        }
    }

    fn close_later(self: &Arc<Self>) {
        let (pool, Ok(runtime)) = (Arc::downgrade(self), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(async move {
            tokio::time::sleep(IDLE_FOR).await;
            if let Some(idle) = pool.upgrade().as_ref().and_then(|pool| pool.source.own()) {
                idle.close();
            }
        });
    }
}

impl Source {
    /// The connections of the client's own, if it has some.
    fn own(&self) -> Option<&Idle> {
        match self {
            Self::Own(idle) => Some(idle),
            #[cfg(feature = "deadpool")]
            Self::Deadpool(_) => None,
            #[cfg(feature = "r2d2")]
            Self::R2d2(_) => None,
        }
    }
}

/// The database and its server.
const IDENTITY: &str = "SELECT concat(current_database(), $1::text, ' of the server that started at ', extract(epoch FROM pg_postmaster_start_time()))";

fn identity_of(rows: Vec<tokio_postgres::Row>) -> String {
    rows.first().map(|row| row.get(0)).unwrap_or_default()
}

impl Lent<'_> {
    async fn identity(&mut self) -> Result<String, BackendError> {
        Ok(self.query(IDENTITY, "").await.map_err(|error| self.failed(error))?.unwrap_or_default())
    }

    /// Calls a function of the schema with arguments, and returns its answer; `None` for NULL.
    ///
    /// A call that ends because others were in its way has done nothing, and is repeated.
    pub(crate) async fn call<T: DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: &(impl Serialize + Sync),
    ) -> Result<Option<T>, BackendError> {
        let arguments = serde_json::to_string(arguments).map_err(unreadable)?;
        let statement = format!("SELECT {}.{function}($1::jsonb)::text", self.pool.config().quoted_schema());
        loop {
            match self.query(&statement, &arguments).await {
                Ok(answer) => return answer.map(|text| serde_json::from_str(&text).map_err(unreadable)).transpose(),
                Err(conflict) if error::is_conflict(&conflict) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Sends a notification that is for no waiter.
    pub(crate) async fn ring(&mut self, channel: &str) -> Result<(), BackendError> {
        let statement = format!("SELECT pg_notify('{channel}', $1::text)::text");
        self.query(&statement, "").await.map_err(|error| self.failed(error))?;
        Ok(())
    }

    async fn query(&mut self, statement: &str, arguments: &str) -> Result<Option<String>, tokio_postgres::Error> {
        let Some(held) = &mut self.held else { return Ok(None) };
        self.is_busy = true;
        let rows = held.query(statement, arguments).await?;
        self.is_busy = false;
        Ok(rows.first().and_then(|row| row.get(0)))
    }

    fn failed(&mut self, error: tokio_postgres::Error) -> BackendError {
        // The server has answered, and waits for the next statement.
        if error::is_without_schema(&error) {
            self.pool.forget_schema();
        }
        let is_without_schema = error::is_without_schema(&error);
        let error = error::of(error, Effect::Unknown);
        self.is_busy = is_without_schema || error.kind() == ErrorKind::Unreachable;
        error
    }
}

fn unreadable(error: serde_json::Error) -> BackendError {
    error::new(ErrorKind::Protocol, Effect::Unknown, "the answer of a function is not what this client expects")
        .with_source(error)
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        match self.held.take() {
            Some(held) if self.is_busy || held.is_closed() => held.close(),
            Some(Held::Own(client)) => self.pool.give_back(client),
            // The others go back to their pools.
            _ => {}
        }
    }
}
