//! The connections of one client: few while it is idle, more while requests overlap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Operation, UrlHost};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use crate::idle::{IDLE_FOR, Idle};

/// How many requests run at once; the others wait. Chosen: enough that commits share a flush of the disk, and few for a server with a hundred
/// connections.
const OPEN_MAX: usize = 8;
/// How long one server may take to accept a connection. Chosen: several round trips around the world.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(2);
/// How long finding or making the tables may take.
const PREPARED_WITHIN: Duration = Duration::from_secs(5);

/// Opens connections.
pub trait Connector: Send + Sync + 'static {
    /// The store's name in errors.
    const BACKEND: &'static str;
    /// A connection. It is closed when it is dropped.
    type Client: Send + 'static;

    /// The servers, in the order in which they are tried.
    fn hosts(&self) -> &[UrlHost];

    /// Connects to one server, if it accepts writes.
    fn connect_to(&self, host: &UrlHost) -> impl Future<Output = Result<Self::Client, BackendError>> + Send;

    /// Finds the tables that this client knows, or makes them.
    fn prepare(&self, client: &mut Self::Client) -> impl Future<Output = Result<(), BackendError>> + Send;

    /// Whether a connection that nobody has used for this long still is of use.
    fn is_usable(client: &mut Self::Client, unused: Duration) -> impl Future<Output = bool> + Send;
}

/// Hands out connections, one request each.
pub struct Pool<C: Connector> {
    connector: Arc<C>,
    idle: Idle<C::Client>,
    open: Arc<Semaphore>,
    /// Whether the tables were found to be as this client needs them.
    is_prepared: AtomicBool,
}

/// A connection for one request. It is closed, and not given back, if it is dropped while it is busy.
pub struct Lent<C: Connector> {
    pool: Arc<Pool<C>>,
    client: Option<C::Client>,
    /// Whether something that was sent over it may still run.
    pub is_busy: bool,
    _permit: OwnedSemaphorePermit,
}

impl<C: Connector> Pool<C> {
    /// Opens connections when they are needed, and keeps this many of them although nobody uses them.
    pub fn keeping(kept: usize, connector: Arc<C>) -> Arc<Self> {
        let (open, is_prepared) = (Arc::new(Semaphore::new(OPEN_MAX)), AtomicBool::new(false));
        Arc::new(Self { connector, idle: Idle::keeping(kept), open, is_prepared })
    }

    /// What opens the connections.
    pub fn connector(&self) -> &Arc<C> {
        &self.connector
    }

    /// A connection that no other request has, to a server that accepts writes and has the tables.
    ///
    /// # Errors
    /// That of the last server that was tried, or of making the tables.
    ///
    /// # Cancel safety
    /// Can be dropped at any point. A connection that is being opened is there for the next request.
    pub async fn lend(self: &Arc<Self>) -> Result<Lent<C>, BackendError> {
        let closed = |_| error::<C>(ErrorKind::Unreachable, "the client is closed");
        let mut permit = Arc::clone(&self.open).acquire_owned().await.map_err(closed)?;
        let client = match self.usable().await {
            Some(client) => client,
            None => self.open(&mut permit).await?,
        };
        Ok(Lent { pool: Arc::clone(self), client: Some(client), is_busy: false, _permit: permit })
    }

    async fn usable(&self) -> Option<C::Client> {
        while let Some((mut client, unused)) = self.idle.take() {
            if C::is_usable(&mut client, unused).await {
                return Some(client);
            }
            // The others are as old.
            self.idle.clear();
        }
        None
    }

    /// Makes sure that the tables are there, for connections that come from elsewhere.
    ///
    /// # Errors
    /// Those of [`lend`](Self::lend).
    ///
    /// # Cancel safety
    /// As [`lend`](Self::lend).
    pub async fn prepare(self: &Arc<Self>) -> Result<(), BackendError> {
        if !self.is_prepared.load(Ordering::Acquire) {
            self.lend().await?.is_busy = true;
        }
        Ok(())
    }

    /// The tables have gone. The next request makes them again.
    pub fn forget_tables(&self) {
        self.is_prepared.store(false, Ordering::Release);
        self.idle.clear();
    }

    /// Opens a connection in a task of its own: a request with little time does not have to begin again and again. The task has the permit
    /// meanwhile, so a client whose requests time out does not log in ever more often.
    async fn open(self: &Arc<Self>, permit: &mut OwnedSemaphorePermit) -> Result<C::Client, BackendError> {
        let (pool, (tell, told)) = (Arc::clone(self), oneshot::channel());
        let lent = permit.split(1);
        tokio::spawn(async move {
            if let Err((Ok(client), _)) = tell.send((pool.open_now().await, lent)) {
                pool.give_back(client);
            }
        });
        let ended = |_| error::<C>(ErrorKind::Unreachable, "the runtime of this client has ended");
        let (opened, lent) = told.await.map_err(ended)?;
        lent.into_iter().for_each(|lent| permit.merge(lent));
        opened
    }

    async fn open_now(&self) -> Result<C::Client, BackendError> {
        let mut client = connect(&*self.connector).await?;
        if !self.is_prepared.load(Ordering::Acquire) {
            let late = |_| Err(error::<C>(ErrorKind::Unavailable, "the server did not show the tables in time"));
            timeout(PREPARED_WITHIN, self.connector.prepare(&mut client)).await.unwrap_or_else(late)?;
            self.is_prepared.store(true, Ordering::Release);
        }
        Ok(client)
    }

    fn give_back(self: &Arc<Self>, client: C::Client) {
        if self.idle.put(client) {
            self.close_later();
        }
    }

    fn close_later(self: &Arc<Self>) {
        let (pool, Ok(runtime)) = (Arc::downgrade(self), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(async move {
            tokio::time::sleep(IDLE_FOR).await;
            pool.upgrade().inspect(|pool| pool.idle.close());
        });
    }
}

impl<C: Connector> Lent<C> {
    /// The connection.
    pub fn client(&mut self) -> Option<&mut C::Client> {
        self.client.as_mut()
    }
}

impl<C: Connector> Drop for Lent<C> {
    fn drop(&mut self) {
        let client = self.client.take().filter(|_| !self.is_busy);
        client.into_iter().for_each(|client| self.pool.give_back(client));
    }
}

/// Connects to the first server that accepts writes.
///
/// # Errors
/// Those of all servers, in one: its kind is that of the last.
///
/// # Cancel safety
/// Can be dropped at any point.
pub async fn connect<C: Connector>(connector: &C) -> Result<C::Client, BackendError> {
    let mut errors = Vec::new();
    for host in connector.hosts() {
        match timeout(ACCEPTED_WITHIN, connector.connect_to(host)).await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(error)) => errors.push(error),
            Err(_) => {
                let message = format!("{host} did not accept a connection within {} s", ACCEPTED_WITHIN.as_secs());
                errors.push(error::<C>(ErrorKind::Unreachable, message));
            }
        }
    }
    Err(one_of_all::<C>(errors))
}

/// Servers may fail for different reasons, so each of them is reported.
fn one_of_all<C: Connector>(mut errors: Vec<BackendError>) -> BackendError {
    let told: Vec<String> = errors.iter().map(told::<C>).collect();
    let mut remedies: Vec<String> = errors.iter().filter_map(|error| Some(error.remedy()?.to_owned())).collect();
    remedies.dedup();
    let Some(last) = errors.pop() else { return error::<C>(ErrorKind::Config, "no server is named") };
    if errors.is_empty() {
        return last;
    }
    let all = error::<C>(last.kind(), told.join("; ")).with_source(last);
    if remedies.is_empty() { all } else { all.with_remedy(remedies.join("; ")) }
}

/// What happened, without the store and what to do.
fn told<C: Connector>(error: &BackendError) -> String {
    let (text, remedy) = (error.to_string(), error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default());
    let text = text.strip_suffix(&remedy).unwrap_or(&text);
    text.strip_prefix(&format!("{} {}: ", C::BACKEND, Operation::Connect)).unwrap_or(text).to_owned()
}

/// Nothing was sent.
fn error<C: Connector>(kind: ErrorKind, message: impl Into<String>) -> BackendError {
    BackendError::new(C::BACKEND, Operation::Connect, kind, Effect::None, message)
}
