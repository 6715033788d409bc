//! The store for tokio.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Ability, Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, Durability, Effect, EntriesEnd,
    ErrorKind, EventSink, Fenced, FencingToken, Isolation, Lease, Location, LockName, ModeKind, Note, Operation,
    ReleaseRequest, Released, Renewed, RequestOrder, Waiting,
};
use lock_host::Bridge;
use tokio::time::timeout;
use tonic::Status;

use crate::client::Client;
use crate::cluster::Cluster;
use crate::error::{self, BACKEND};
use crate::servers::Servers;
use crate::{EtcdConfig, HeldKey, fence, inspect, latches, limits, once};

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// One client. Its connections have a thread of their own, so that nothing that users do delays a renewal.
pub struct Store(Arc<Client>);

/// The thread that connections belong to.
pub(crate) fn bridge() -> Result<Bridge, BackendError> {
    let failed = |failure| {
        let message = "a thread for connections cannot be started";
        error::new(Operation::Connect, ErrorKind::Unavailable, Effect::None, message).with_source(failure)
    };
    Bridge::start().map_err(failed)
}

/// Connects to the first server that answers.
///
/// # Errors
/// `Unreachable` or `Timeout` if no majority answers, `Denied` if the servers refuse the user, `Unsupported` if they are older than etcd 3.4,
/// `Config` if TLS cannot work as configured, or the base of the tokens is not a number.
///
/// # Cancel safety
/// Can be dropped at any point.
pub async fn connect(config: &EtcdConfig) -> Result<Store, BackendError> {
    over(config, bridge()?).await
}

/// Finds the key of the lock that is held with this token, for [transactions of your own](HeldKey). Returns `None` if it is not held any more.
///
/// # Errors
/// Those of [`connect`].
///
/// # Cancel safety
/// Can be dropped at any point.
pub async fn held_key(
    config: &EtcdConfig,
    name: &LockName,
    token: FencingToken,
) -> Result<Option<HeldKey>, BackendError> {
    fence::held_key(config, bridge()?, name, token).await
}

pub(crate) async fn over(config: &EtcdConfig, bridge: Bridge) -> Result<Store, BackendError> {
    let servers = Servers::new(config, bridge.handle())?;
    let client = Client::new(config, servers, bridge);
    let opened = timeout(CONNECT_WITHIN, once::first_answer(&client.cluster, |cluster| try_out(cluster).boxed())).await;
    match opened {
        Ok(opened) => opened.map_err(|status| error::of_opening(config, status))?,
        Err(_) => return Err(error::silence(config, CONNECT_WITHIN)),
    }
    Ok(Store(client))
}

async fn try_out(cluster: &Cluster) -> Result<(), Status> {
    cluster.servers.check_version().await?;
    cluster.check_base().await
}

async fn within<T>(
    operation: Operation,
    within: Duration,
    run: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    timeout(within, run).await.unwrap_or_else(|_| Err(error::timeout(operation, within)))
}

impl Store {
    /// Carries out a request that is not about a claim.
    async fn ask<T>(
        operation: Operation,
        time: Duration,
        run: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, BackendError> {
        within(operation, time, async { run.await.map_err(|status| error::of(operation, status)) }).await
    }
}

impl Backend for Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::ByOperator)
            .with_ordering(RequestOrder::Unordered)
            .with_isolation(Isolation::Isolated)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_abilities(&[Ability::Keep, Ability::Replace, Ability::SetLimit, Ability::Latch, Ability::Inspect])
            .with_entries_end(EntriesEnd::WithTtl)
    }

    fn listen(&self, sink: EventSink) {
        self.0.listeners.add(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        let config = &self.0.config;
        Some(Location { store: config.place(), key: config.prefix().key(name.as_str()) })
    }
}

#[async_trait]
impl AsyncBackend for Store {
    /// The same: its connections have a thread of their own.
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self
    }

    async fn acquire(&self, claim: &Claim, time: Duration) -> Result<Answer, BackendError> {
        within(Operation::Acquire, time, self.0.claim(claim)).await
    }

    async fn renew(&self, leases: &[Lease], time: Duration) -> Result<Vec<Renewed>, BackendError> {
        within(Operation::Renew, time, self.0.renew(leases)).await
    }

    async fn release(&self, request: &ReleaseRequest, time: Duration) -> Result<Released, BackendError> {
        within(Operation::Release, time, self.0.release(request)).await
    }

    async fn fence(&self, lease: &Lease, time: Duration) -> Result<Fenced, BackendError> {
        within(Operation::Fence, time, self.0.fence(lease)).await
    }

    async fn limit(&self, request: &limit::Request, time: Duration) -> Result<Usage, BackendError> {
        within(Operation::Limit, time, limits::ask(&self.0.cluster, request)).await
    }

    async fn latch(&self, request: &latch::Request, time: Duration) -> Result<Seen, BackendError> {
        let asked = latches::ask(&self.0.cluster, request);
        let state = Self::ask(Operation::Latch, time, asked).await?;
        Ok(Seen { state, told: false })
    }

    async fn holder(&self, name: &LockName, time: Duration) -> Result<Option<Entry>, BackendError> {
        Self::ask(Operation::Inspect, time, inspect::shown(&self.0.cluster, name)).await
    }

    async fn list(&self, query: &Query, time: Duration) -> Result<Page, BackendError> {
        Self::ask(Operation::Inspect, time, inspect::list(&self.0.cluster, query)).await
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        time: Duration,
    ) -> Result<Revoked, BackendError> {
        Self::ask(Operation::Inspect, time, inspect::revoke(&self.0.cluster, name, token, by)).await
    }

    async fn revoked_by(
        &self,
        _: &LockName,
        highest: FencingToken,
        time: Duration,
    ) -> Result<Option<Note>, BackendError> {
        Self::ask(Operation::Inspect, time, inspect::revoked_by(&self.0.cluster, highest)).await
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.0.config).finish()
    }
}
