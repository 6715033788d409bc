//! The connections of one client: few while it is idle, more while requests overlap.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_core::{BackendError, Effect, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::PostgresConfig;
use crate::connect::Connector;
use crate::error;
use crate::schema;

/// How many requests run at once; the others wait. Chosen: enough that commits share a flush of the disk, and few for a server with a hundred
/// connections.
const OPEN_MAX: usize = 8;
/// How long an unused connection is kept. Chosen: longer than the pauses of a busy client, and between renewals at the default ttl.
const IDLE_FOR: Duration = Duration::from_secs(30);

/// Hands out connections, one request each.
pub(crate) struct Pool {
    connector: Arc<Connector>,
    idle: Mutex<Vec<(Client, Instant)>>,
    open: Semaphore,
    /// How many unused connections are kept for longer.
    kept: usize,
    /// Whether the schema was found to be as this client needs it.
    is_prepared: AtomicBool,
}

/// A connection for one request. It is closed, and not given back, if the request is dropped before its answer.
pub(crate) struct Lent<'a> {
    pool: &'a Arc<Pool>,
    client: Option<Client>,
    is_busy: bool,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>, kept: usize) -> Arc<Self> {
        let (idle, open, is_prepared) = (Mutex::default(), Semaphore::new(OPEN_MAX), AtomicBool::new(false));
        Arc::new(Self { connector, idle, open, kept, is_prepared })
    }

    pub(crate) fn config(&self) -> &PostgresConfig {
        &self.connector.config
    }

    pub(crate) fn connector(&self) -> &Arc<Connector> {
        &self.connector
    }

    pub(crate) async fn lend(self: &Arc<Self>) -> Result<Lent<'_>, BackendError> {
        let closed = |_| error::new(ErrorKind::Unreachable, Effect::None, "the client is closed");
        let permit = self.open.acquire().await.map_err(closed)?;
        let client = match self.take() {
            Some(client) => client,
            None => self.open().await?,
        };
        Ok(Lent { pool: self, client: Some(client), is_busy: false, _permit: permit })
    }

    fn take(&self) -> Option<Client> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).map(|(client, _)| client).find(|client| !client.is_closed())
    }

    /// Opens a connection in a task of its own: a request with little time does not have to begin again and again.
    async fn open(self: &Arc<Self>) -> Result<Client, BackendError> {
        let (pool, (tell, told)) = (Arc::clone(self), oneshot::channel());
        tokio::spawn(async move {
            if let Err(Ok(client)) = tell.send(pool.open_now().await) {
                pool.give_back(client);
            }
        });
        let ended = |_| error::new(ErrorKind::Unreachable, Effect::None, "the runtime of this client has ended");
        told.await.map_err(ended)?
    }

    async fn open_now(&self) -> Result<Client, BackendError> {
        let (mut client, _) = self.connector.connect().await?;
        if !self.is_prepared.load(Ordering::Acquire) {
            schema::prepare(&mut client, self.config()).await?;
            self.is_prepared.store(true, Ordering::Release);
        }
        Ok(client)
    }

    fn give_back(self: &Arc<Self>, client: Client) {
        let mut idle = self.idle();
        idle.push((client, Instant::now()));
        if idle.len() > self.kept {
            self.close_later();
        }
    }

    fn close_later(self: &Arc<Self>) {
        let (pool, Ok(runtime)) = (Arc::downgrade(self), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(async move {
            tokio::time::sleep(IDLE_FOR).await;
            if let Some(pool) = pool.upgrade() {
                pool.close_idle();
            }
        });
    }

    /// Closes what nobody has used for a while, except what is kept.
    fn close_idle(&self) {
        let mut idle = self.idle();
        // The last one is used first.
        let unused = idle.iter().take_while(|(_, since)| since.elapsed() >= IDLE_FOR).count();
        let spare = idle.len().saturating_sub(self.kept);
        idle.drain(..unused.min(spare));
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Client, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent<'_> {
    /// Calls a function of the schema with arguments, and returns its answer; `None` for NULL.
    ///
    /// A call that ends because others were in its way has done nothing, and is repeated.
    pub(crate) async fn call<T: DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: &(impl Serialize + Sync),
    ) -> Result<Option<T>, BackendError> {
        let arguments = serde_json::to_string(arguments).map_err(unreadable)?;
        let statement = format!("SELECT {}.{function}($1::jsonb)::text", self.pool.config().schema);
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
        let Some(client) = &self.client else { return Ok(None) };
        self.is_busy = true;
        let rows = client.query_typed(statement, &[(&arguments, Type::TEXT)]).await?;
        self.is_busy = false;
        Ok(rows.first().and_then(|row| row.get(0)))
    }

    fn failed(&mut self, error: tokio_postgres::Error) -> BackendError {
        // The server has answered, and waits for the next statement.
        self.is_busy = error.as_db_error().is_none() || error::is_without_schema(&error);
        if error::is_without_schema(&error) {
            self.pool.is_prepared.store(false, Ordering::Release);
            self.pool.idle().clear();
        }
        error::of(error, Effect::Unknown)
    }
}

fn unreadable(error: serde_json::Error) -> BackendError {
    error::new(ErrorKind::Protocol, Effect::Unknown, "the answer of a function is not what this client expects")
        .with_source(error)
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take().filter(|client| !self.is_busy && !client.is_closed()) {
            self.pool.give_back(client);
        }
    }
}
