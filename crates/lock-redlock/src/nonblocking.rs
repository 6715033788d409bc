//! The quorum for tokio.

mod run;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{FutureExt, select};
use lock_core::latch::{self, Seen};
use lock_core::node::AsyncQuorumNode;
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, Lease, Location, LockName,
    ReleaseRequest, Released, Renewed, Ttl,
};
use lock_host::{HostClock, SharedClock};
use tokio::time::timeout;

use crate::epochs::HostEpochs;
use crate::quorum::{Purpose, Quorum, Report, Request, Verdict, no_verdict};
use crate::{capabilities, hints, location, no_latches};
use run::{Common, Run, Shared};

/// A quorum for tokio. Each node has one connection, which keeps the order, and another one for the keeper.
#[derive(Debug)]
pub struct Redlock<N> {
    shared: Arc<Shared<N>>,
    side: Side,
}

/// Whose connections these are.
#[derive(Debug)]
enum Side {
    Client,
    /// The keeper is flushed when the client's runtime has ended.
    Keeper,
}

impl<N: AsyncQuorumNode> Redlock<N> {
    /// A quorum of these nodes. None is asked yet, and none votes before the first recovery [pass](Self::pass).
    ///
    /// # Errors
    /// `Config` for fewer than three nodes, or for one that is listed twice.
    pub fn of(nodes: Vec<N>, max_ttl: Ttl) -> Result<Self, BackendError> {
        Self::on_clock(nodes, max_ttl, Arc::new(HostClock))
    }

    /// The same with the caller's clock.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on_clock(nodes: Vec<N>, max_ttl: Ttl, clock: SharedClock) -> Result<Self, BackendError> {
        let addresses: Vec<_> = nodes.iter().map(|node| node.address().to_owned()).collect();
        let quorum = Quorum::new(&addresses, max_ttl, Box::new(HostEpochs))?;
        let common = Arc::new(Common::new(quorum));
        Ok(Self { shared: Arc::new(Shared { nodes, common, clock }), side: Side::Client })
    }

    /// A quorum of these nodes, after a first recovery pass. Each step of that may take `within`.
    ///
    /// # Errors
    /// `Config` if nodes are misconfigured; the error of the nodes if most of them cannot be reached. A quorum that
    /// does not vote yet is not an error here, but each verb reports it.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: a pass may stop after any step.
    pub async fn connect(nodes: Vec<N>, max_ttl: Ttl, within: Duration) -> Result<(Self, Report), BackendError> {
        let quorum = Self::of(nodes, max_ttl)?;
        let report = quorum.pass(Purpose::Watch, within).await?;
        report.check_reached()?;
        Ok((quorum, report))
    }

    /// Runs a recovery pass. Each of its steps may take `within`.
    ///
    /// # Errors
    /// `Config` if nodes are misconfigured.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: a pass may stop after any step.
    pub async fn pass(&self, purpose: Purpose, within: Duration) -> Result<Report, BackendError> {
        self.run(Request::Pass(purpose), within).await?.of_pass()
    }

    /// Runs a request up to its verdict. The rest of it continues in the background.
    async fn run(&self, request: Request, within: Duration) -> Result<Verdict, BackendError> {
        let mut run = Run::begin(Arc::clone(&self.shared), request, within);
        let verdict = run.verdict().await;
        if run.is_unfinished() {
            tokio::spawn(run.finish());
        }
        verdict.ok_or_else(no_verdict)
    }
}

impl<N: AsyncQuorumNode> Backend for Redlock<N> {
    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        location::locate(&self.shared.nodes, name)
    }

    fn listen(&self, sink: EventSink) {
        let majority = self.shared.common.state().quorum.majority();
        hints::listen(&self.shared.nodes, majority, &sink);
    }
}

#[async_trait]
impl<N: AsyncQuorumNode> AsyncBackend for Redlock<N> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        let Shared { nodes, common, clock } = &*self.shared;
        let nodes = nodes.iter().map(AsyncQuorumNode::for_keeper).collect();
        let (common, clock) = (Arc::clone(common), Arc::clone(clock));
        Arc::new(Self { shared: Arc::new(Shared { nodes, common, clock }), side: Side::Keeper })
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.run(Request::Acquire(claim.clone()), within).await?.of_acquire()
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.run(Request::Renew(leases.to_vec()), within).await?.of_renew()
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.run(Request::Release(request.clone()), within).await?.of_release()
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.run(Request::Fence(lease.clone()), within).await?.of_fence()
    }

    async fn latch(&self, _request: &latch::Request, _within: Duration) -> Result<Seen, BackendError> {
        Err(no_latches())
    }

    async fn flush(&self, within: Duration) {
        let held_back = Run::of_held_back(Arc::clone(&self.shared), within);
        let settled = self.shared.common.settled();
        _ = match self.side {
            Side::Client => {
                if held_back.is_unfinished() {
                    tokio::spawn(held_back.finish());
                }
                timeout(within, settled).await
            }
            // What was sent over the client's connections may never be reported.
            Side::Keeper => timeout(within, select(pin!(held_back.finish()), pin!(settled)).map(drop)).await,
        };
    }
}
