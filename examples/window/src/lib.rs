//! A lock store behind a network. `lock-rules` decides over windows: what a request needs of a lock is loaded in one round trip, and what it
//! decides is committed in another one, unless the lock has changed meanwhile.
//!
//! `server` (the rows: load and commit) · `latches` (those of latches) · `network` (slow, and failing on command) · this file (the
//! requests, with their time limits).

mod latches;
mod network;
mod server;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_core::latch::Seen;
use lock_core::limit::Usage;
use lock_core::{
    Ability, Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, Durability, Effect, ErrorKind,
    EventSink, Fenced, Lease, Listeners, ModeKind, Operation, ReleaseRequest, Released, Renewed, Waiting, latch, limit,
};
use lock_host::SharedClock;
use lock_rules::window;
use tokio::time::timeout;

use crate::network::{BACKEND, Remote};
pub use crate::network::{Failure, Network};
use crate::server::{ClientId, Server};

/// A server. Clones are handles to the same one.
#[derive(Clone)]
pub struct WindowServer(Arc<Server>);

impl WindowServer {
    /// An empty server.
    pub fn new(clock: SharedClock) -> Self {
        Self(Arc::new(Server::new(clock)))
    }

    /// A new client, which reaches the server over this network.
    pub fn client(&self, network: Network) -> Windows {
        let (id, listeners) = self.0.connect();
        Windows { id, listeners, store: Remote { server: Arc::clone(&self.0), network } }
    }
}

/// A client of the server.
pub struct Windows {
    id: ClientId,
    listeners: Arc<Listeners>,
    store: Remote,
}

impl Backend for Windows {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::Process)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_abilities(&[Ability::Keep, Ability::Replace, Ability::SetLimit, Ability::Barge, Ability::Latch])
    }

    fn listen(&self, sink: EventSink) {
        self.listeners.add(sink);
    }
}

#[async_trait]
impl AsyncBackend for Windows {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let request = window::acquire(self.id, claim);
        limited(Operation::Acquire, within, self.store.run(&claim.name, request)).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let all = async {
            let mut renewed = Vec::new();
            for lease in leases {
                renewed.push(self.store.run(&lease.name, window::renew(lease)).await?);
            }
            Ok(renewed)
        };
        limited(Operation::Renew, within, all).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        limited(Operation::Release, within, self.store.run(&request.name, window::release(request))).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        limited(Operation::Fence, within, self.store.run(&lease.name, window::fence(lease))).await
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        limited(Operation::Limit, within, self.store.run(&request.name, window::limit(request))).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        let state = limited(Operation::Latch, within, self.store.ask_latch(request)).await?;
        Ok(Seen { state, told: false })
    }
}

/// Drops a request when its time is over, so that no commit is sent later.
async fn limited<T>(
    operation: Operation,
    within: Duration,
    request: impl Future<Output = Result<T, BackendError>> + Send,
) -> Result<T, BackendError> {
    let answer = timeout(within, request).await.unwrap_or_else(|_| {
        let message = "the server did not answer in time";
        Err(BackendError::new(BACKEND, operation, ErrorKind::Timeout, Effect::Unknown, message))
    });
    answer.map_err(|error| error.of_operation(operation))
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.store.server.disconnect(self.id);
    }
}

impl fmt::Debug for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Windows").field("id", &self.id).finish_non_exhaustive()
    }
}
