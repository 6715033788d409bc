//! The store for tokio. No verb ever waits: the mutex is held for microseconds and never across an await.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, Location,
    LockName, Note, ReleaseRequest, Released, Renewed,
};
use lock_host::SharedClock;

use crate::client::{CAPABILITIES, Client};
use crate::{MemoryConfig, MemoryStore};

/// One async client of a store in this process.
///
/// No verb waits, so `within` never runs out; a call takes effect in full when its future is first polled.
#[derive(Debug)]
pub struct Memory(Client);

impl Memory {
    /// The only client of a new store on the host's clock.
    pub fn new() -> Self {
        MemoryStore::default().nonblocking()
    }

    /// The only client of a new store on `clock`.
    pub fn with_clock(clock: SharedClock) -> Self {
        MemoryStore::new(clock).nonblocking()
    }

    /// A new client of the store that `config` names.
    pub fn open(config: &MemoryConfig) -> Self {
        MemoryStore::open(config).nonblocking()
    }
}

impl MemoryStore {
    /// A new client for tokio.
    pub fn nonblocking(&self) -> Memory {
        Memory(self.client())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for Memory {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn listen(&self, sink: EventSink) {
        self.0.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Some(self.0.locate(name))
    }
}

#[async_trait]
impl AsyncBackend for Memory {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self
    }

    async fn acquire(&self, claim: &Claim, _within: Duration) -> Result<Answer, BackendError> {
        self.0.ask(|store, now, client| store.acquire(now, client, claim))
    }

    async fn renew(&self, leases: &[Lease], _within: Duration) -> Result<Vec<Renewed>, BackendError> {
        Ok(self.0.ask(|store, now, _| store.renew(now, leases)))
    }

    async fn release(&self, request: &ReleaseRequest, _within: Duration) -> Result<Released, BackendError> {
        self.0.ask(|store, now, _| store.release(now, request))
    }

    async fn fence(&self, lease: &Lease, _within: Duration) -> Result<Fenced, BackendError> {
        Ok(self.0.ask(|store, now, _| store.fence(now, lease)))
    }

    async fn holder(&self, name: &LockName, _within: Duration) -> Result<Option<Entry>, BackendError> {
        Ok(self.0.ask(|store, now, _| store.holder(now, name)))
    }

    async fn list(&self, query: &Query, _within: Duration) -> Result<Page, BackendError> {
        Ok(self.0.ask(|store, now, _| store.list(now, query)))
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        _within: Duration,
    ) -> Result<Revoked, BackendError> {
        Ok(self.0.ask(|store, now, _| store.revoke(now, name, token, by)))
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        _within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        Ok(self.0.ask(|store, now, _| store.revoked_by(now, name, highest)))
    }

    async fn latch(&self, request: &latch::Request, _within: Duration) -> Result<Seen, BackendError> {
        Ok(self.0.ask(|store, now, client| store.latch(now, client, request)))
    }

    async fn limit(&self, request: &limit::Request, _within: Duration) -> Result<Usage, BackendError> {
        self.0.ask(|store, now, _| store.limit(now, request))
    }
}
