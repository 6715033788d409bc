//! The store for tokio: a thread that owns one connection, and a channel to it. Needs no runtime.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Act, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, Location,
    LockName, Note, Operation, ReleaseRequest, Released, Renewed, RequestOrder,
};
use lock_host::{Alarms, HostClock};

use crate::settings::{CAPABILITIES, Settings};
use crate::verb::{Count, Glance, NewLimit, Revocation, RevokedBy};
use crate::worker::{Worker, no_thread};
use crate::{SqliteConfig, Timing};

/// One async client of a file.
///
/// A request that waits too long for others fails as `Unavailable`, and nothing has happened; one that the disk does
/// not answer in time fails as `Timeout`. Requests take effect in the order in which they are first polled.
#[derive(Debug)]
pub struct Sqlite(Worker);

impl Sqlite {
    /// Opens the file, or creates it if it is missing. Blocks for some milliseconds or, while others open it, for at
    /// most 5 s.
    ///
    /// # Errors
    /// `Config` if the directory is missing, on a network file system, for a file that has hard links or is mounted
    /// without its directory, and for a file of a newer version; `Denied` if the file or its directory is not writable;
    /// `OtherKind` for a file of another application. All of these leave the file untouched. `Unavailable` if the disk
    /// is full.
    pub fn open(config: &SqliteConfig) -> Result<Self, BackendError> {
        Self::open_with(config, Timing::of_host()?)
    }

    /// The same with leases timed by `timing`, for tests.
    ///
    /// # Errors
    /// Those of [`Sqlite::open`].
    pub fn open_with(config: &SqliteConfig, timing: Timing) -> Result<Self, BackendError> {
        let alarms = Alarms::start(Arc::new(HostClock)).map_err(|error| no_thread(Operation::Connect, error))?;
        Ok(Self(Worker::open(Arc::new(Settings::new(config, timing)), Arc::new(alarms))?))
    }
}

impl Backend for Sqlite {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES.with_ordering(RequestOrder::InOrder)
    }

    fn listen(&self, sink: EventSink) {
        self.0.watcher().listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Some(self.0.settings().locate(name))
    }
}

#[async_trait]
impl AsyncBackend for Sqlite {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self(self.0.another()))
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.0.ask(claim.clone(), within).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.0.ask(leases.to_vec(), within).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.0.ask(request.clone(), within).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.0.ask(lease.clone(), within).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.0.ask(name.clone(), within).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.0.ask(query.clone(), within).await
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.0.ask(Revocation(name.clone(), token, by.clone()), within).await
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.0.ask(RevokedBy(name.clone(), highest), within).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        match request.act {
            Act::Look { .. } => self.0.ask(Glance(request.name.clone()), within).await,
            Act::Arrive { .. } | Act::Make { .. } | Act::Expect { .. } | Act::Reset { .. } => {
                self.0.ask(request.clone(), within).await
            }
        }
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        match request.act {
            limit::Act::Look => self.0.ask(Count(request.clone()), within).await,
            limit::Act::Set(_) => self.0.ask(NewLimit(request.clone()), within).await,
        }
    }
}
