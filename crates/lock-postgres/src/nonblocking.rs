//! The store for tokio.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Ability, Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, Durability, Effect, ErrorKind,
    EventSink, Fenced, FencingToken, Lease, Location, LockName, ModeKind, Note, Operation, ReleaseRequest, Released,
    Renewed, Waiting,
};
use lock_rules::window;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::PostgresConfig;
use crate::connect::Connector;
use crate::error::{self, BACKEND};
use crate::pool::Pool;
#[cfg(feature = "deadpool")]
use crate::pool::Source;
use crate::store::Session;
use crate::waiters::Waiters;

/// One async client of a database.
///
/// It has one connection while it is idle, one more each while somebody waits and while leases are renewed, and up to eight while requests
/// overlap. They belong to the runtime that it is used from.
pub struct Postgres {
    pool: Arc<Pool>,
    waiters: Arc<Waiters>,
}

impl Postgres {
    /// Connects, and makes the tables if they are missing and this role may.
    ///
    /// # Errors
    /// `Unreachable` if no server answers; `Unavailable` if none of them accepts writes; `Denied` for a wrong user or password, and if the
    /// tables are missing and this role may not make them; `Config` for an unknown database, a certificate that is not trusted, and
    /// tables of another version.
    ///
    /// # Cancel safety
    /// Can be dropped at any point. The tables may have been made.
    pub async fn connect(config: &PostgresConfig) -> Result<Self, BackendError> {
        Self::over(Pool::own(Arc::new(Connector::new(config)), 1)).await
    }

    /// The same, with requests over your own pool. Connections of the client's own, to the servers of the configuration, notify waiters, renew
    /// leases and release locks, however busy the pool is.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); `Config` if the pool leads to another server or database than the configuration.
    ///
    /// # Cancel safety
    /// As [`connect`](Self::connect).
    #[cfg(feature = "deadpool")]
    pub async fn pooled(pool: deadpool_postgres::Pool, config: &PostgresConfig) -> Result<Self, BackendError> {
        Self::over(Pool::of(Arc::new(Connector::new(config)), Source::Deadpool(pool))).await
    }

    pub(crate) async fn over(pool: Arc<Pool>) -> Result<Self, BackendError> {
        pool.check().await?;
        Ok(Self { waiters: Arc::new(Waiters::new(pool.of_waiters())), pool })
    }

    fn key(&self, name: &LockName) -> String {
        self.pool.config().key(name)
    }

    /// A connection, and when the time of the request is over.
    async fn begin(&self, operation: Operation, within: Duration) -> Result<(Session<'_>, Instant), BackendError> {
        let deadline = Instant::now() + within;
        let late = |_: Elapsed| {
            Err(error::new(ErrorKind::Unreachable, Effect::None, "no connection became available in time")
                .with_remedy("check that the server is running and reachable, or raise op_timeout"))
        };
        let connection = timeout_at(deadline, self.pool.lend()).await.unwrap_or_else(late);
        let connection = connection.map_err(|error| error.of_operation(operation))?;
        Ok((Session::new(connection, deadline), deadline))
    }
}

/// Drops a request when its time is over, so that nothing of it is sent later.
async fn limited<T>(
    operation: Operation,
    deadline: Instant,
    request: impl Future<Output = Result<T, BackendError>> + Send,
) -> Result<T, BackendError> {
    let late = |_| Err(error::new(ErrorKind::Timeout, Effect::Unknown, "the server did not answer in time"));
    timeout_at(deadline, request).await.unwrap_or_else(late).map_err(|error| error.of_operation(operation))
}

impl Backend for Postgres {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::ClockFloor)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_abilities(&[Ability::Keep, Ability::Replace, Ability::SetLimit, Ability::Latch, Ability::Inspect])
    }

    fn listen(&self, sink: EventSink) {
        self.waiters.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        let config = self.pool.config();
        Some(Location { store: format!("{}#{}", config.place(), config.schema), key: self.key(name) })
    }
}

#[async_trait]
impl AsyncBackend for Postgres {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        let pool = Pool::own(Arc::clone(self.pool.connector()), 0);
        Arc::new(Self { pool, waiters: Arc::clone(&self.waiters) })
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let (mut session, deadline) = self.begin(Operation::Acquire, within).await?;
        let (bell, key) = (self.waiters.expect(claim), self.key(&claim.name));
        let answer = limited(Operation::Acquire, deadline, session.acquire(&key, claim, &bell)).await;
        match &answer {
            Ok(answer) => self.waiters.follow(claim, answer),
            Err(error) if error.effect() == Effect::None => self.waiters.refused(claim.owner),
            // It may still be granted, and then notified.
            Err(_) => {}
        }
        answer
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let (mut session, deadline) = self.begin(Operation::Renew, within).await?;
        let leases: Vec<_> = leases.iter().map(|lease| (self.key(&lease.name), lease)).collect();
        limited(Operation::Renew, deadline, session.renew(&leases)).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.waiters.forget(request.owner);
        let ((mut session, deadline), key) = (self.begin(Operation::Release, within).await?, self.key(&request.name));
        limited(Operation::Release, deadline, session.release(&key, request)).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Fence, within).await?, self.key(&lease.name));
        let request = session.run(&key, None, window::fence(lease));
        limited(Operation::Fence, deadline, request).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Latch, within).await?, self.key(&request.name));
        let state = limited(Operation::Latch, deadline, session.latch(&key, request)).await?;
        Ok(Seen { state, told: false })
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Limit, within).await?, self.key(&request.name));
        let usage = session.run(&key, None, window::limit(request));
        limited(Operation::Limit, deadline, usage).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Inspect, within).await?, self.key(name));
        limited(Operation::Inspect, deadline, session.show(&key, name)).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let (mut session, deadline) = self.begin(Operation::Inspect, within).await?;
        limited(Operation::Inspect, deadline, session.list(self.pool.config(), query)).await
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Inspect, within).await?, self.key(name));
        let revoked = session.run(&key, None, window::revoke(name, token, by));
        limited(Operation::Inspect, deadline, revoked).await
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Inspect, within).await?, self.key(name));
        let needs = window::Needs { token: Some(highest), ..window::Needs::default() };
        let loaded = limited(Operation::Inspect, deadline, session.load(&key, needs)).await?;
        Ok(loaded.revoked_by)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("config", self.pool.config()).finish_non_exhaustive()
    }
}
