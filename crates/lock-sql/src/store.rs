//! Requests of one client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, Effect, ErrorKind, EventSink, Fenced,
    FencingToken, Lease, Location, LockName, Note, Operation, ReleaseRequest, Released, Renewed,
};
use lock_rules::window;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::database::{Database, error};
use crate::session::Session;
use crate::waiters::Waiters;

/// One async client of a database. Its connections belong to the runtime that it is used from.
pub struct Store<D: Database> {
    database: D,
    waiters: Arc<Waiters<D>>,
}

impl<D: Database> Store<D> {
    /// A store over this database.
    pub fn new(database: D) -> Self {
        Self { waiters: Arc::new(Waiters::new(database.for_waiters())), database }
    }

    fn key(&self, name: &LockName) -> String {
        self.database.prefix().key(name.as_str())
    }

    /// A connection, and when the time of the request is over.
    async fn begin(&self, operation: Operation, within: Duration) -> Result<(Session<D>, Instant), BackendError> {
        Self::begin_at(&self.database, operation, within).await
    }

    async fn begin_at(
        database: &D,
        operation: Operation,
        within: Duration,
    ) -> Result<(Session<D>, Instant), BackendError> {
        let deadline = Instant::now() + within;
        let late = |_: Elapsed| {
            Err(error::<D>(ErrorKind::Unreachable, Effect::None, "no connection became available in time")
                .with_remedy("check that the server is running and reachable, or raise op_timeout"))
        };
        let connection = timeout_at(deadline, database.lend()).await.unwrap_or_else(late);
        let connection = connection.map_err(|error| error.of_operation(operation))?;
        Ok((Session::new(connection, deadline), deadline))
    }
}

/// Drops a request when its time is over, so that nothing of it is sent later.
async fn limited<D: Database, T>(
    operation: Operation,
    deadline: Instant,
    request: impl Future<Output = Result<T, BackendError>> + Send,
) -> Result<T, BackendError> {
    let late = |_| Err(error::<D>(ErrorKind::Timeout, Effect::Unknown, "the server did not answer in time"));
    timeout_at(deadline, request).await.unwrap_or_else(late).map_err(|error| error.of_operation(operation))
}

impl<D: Database> Backend for Store<D> {
    fn capabilities(&self) -> Capabilities {
        self.database.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.waiters.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Some(Location { store: self.database.place(), key: self.key(name) })
    }

    fn warnings(&self) -> Vec<String> {
        self.database.warnings()
    }
}

#[async_trait]
impl<D: Database> AsyncBackend for Store<D> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self { database: self.database.for_keeper(), waiters: Arc::clone(&self.waiters) })
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let (mut session, deadline) = self.begin(Operation::Acquire, within).await?;
        let (bell, key) = (self.waiters.expect(claim), self.key(&claim.name));
        let answer = limited::<D, _>(Operation::Acquire, deadline, session.acquire(&key, claim, &bell)).await;
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
        limited::<D, _>(Operation::Renew, deadline, session.renew(&leases)).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.waiters.forget(request.owner);
        // A release must not wait for a busy pool.
        let (mut session, deadline) = Self::begin_at(&self.database.for_waiters(), Operation::Release, within).await?;
        let key = self.key(&request.name);
        limited::<D, _>(Operation::Release, deadline, session.release(&key, request)).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Fence, within).await?, self.key(&lease.name));
        let request = session.run(&key, None, window::fence(lease));
        limited::<D, _>(Operation::Fence, deadline, request).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Latch, within).await?, self.key(&request.name));
        let state = limited::<D, _>(Operation::Latch, deadline, session.latch(&key, request)).await?;
        Ok(Seen { state, told: false })
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Limit, within).await?, self.key(&request.name));
        let usage = session.run(&key, None, window::limit(request));
        limited::<D, _>(Operation::Limit, deadline, usage).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Inspect, within).await?, self.key(name));
        limited::<D, _>(Operation::Inspect, deadline, session.show(&key, name)).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let (mut session, deadline) = self.begin(Operation::Inspect, within).await?;
        limited::<D, _>(Operation::Inspect, deadline, session.list(self.database.prefix(), query)).await
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
        limited::<D, _>(Operation::Inspect, deadline, revoked).await
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        let ((mut session, deadline), key) = (self.begin(Operation::Inspect, within).await?, self.key(name));
        let needs = window::Needs { token: Some(highest), ..window::Needs::default() };
        let loaded = limited::<D, _>(Operation::Inspect, deadline, session.load(&key, needs)).await?;
        Ok(loaded.revoked_by)
    }
}

impl<D: Database> fmt::Debug for Store<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("database", &self.database).finish_non_exhaustive()
    }
}
