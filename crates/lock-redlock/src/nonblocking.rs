//! The quorum for tokio.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use lock_core::node::AsyncQuorumNode;
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, Lease, ReleaseRequest,
    Released, Renewed, Ttl,
};
use lock_host::{HostClock, SharedClock};
use tokio::sync::Notify;

use crate::epochs::HostEpochs;
use crate::quorum::{Outcome, Outgoing, Output, Purpose, Quorum, Report, Request, RequestId, Verdict, no_verdict};
use crate::{capabilities, hints};

/// A quorum for tokio. Each node has one connection, which keeps the order, and another one for the keeper.
#[derive(Debug)]
pub struct Redlock<N> {
    shared: Arc<Shared<N>>,
}

#[derive(Debug)]
struct Shared<N> {
    nodes: Vec<N>,
    quorum: Arc<Mutex<Quorum>>,
    /// Notified when nothing is under way any more.
    quiet: Arc<Notify>,
    clock: SharedClock,
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
        let quorum = Arc::new(Mutex::new(Quorum::new(&addresses, max_ttl, Box::new(HostEpochs))?));
        Ok(Self { shared: Arc::new(Shared { nodes, quorum, quiet: Arc::default(), clock }) })
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
        if !run.under_way.is_empty() {
            tokio::spawn(run.finish());
        }
        verdict.ok_or_else(no_verdict)
    }
}

impl<N> Shared<N> {
    fn quorum(&self) -> MutexGuard<'_, Quorum> {
        self.quorum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify_if_quiet(&self, quorum: &Quorum) {
        if quorum.is_quiet() {
            self.quiet.notify_waiters();
        }
    }
}

/// A request that is being run, and what is under way to the nodes for it.
struct Run<N> {
    shared: Arc<Shared<N>>,
    id: RequestId,
    verdict: Option<Verdict>,
    /// In the order of the outputs, which is the order in which a node has to receive its own.
    under_way: Vec<(Outgoing, BoxFuture<'static, Outcome>)>,
}

impl<N: AsyncQuorumNode> Run<N> {
    fn begin(shared: Arc<Shared<N>>, request: Request, within: Duration) -> Self {
        let now = shared.clock.now();
        let mut quorum = shared.quorum();
        let id = quorum.begin(now, request, within);
        let mut run = Self { shared: Arc::clone(&shared), id, verdict: None, under_way: Vec::new() };
        run.take_outputs(&mut quorum);
        run
    }

    /// The verdict, or none if the request ended without one.
    async fn verdict(&mut self) -> Option<Verdict> {
        while self.verdict.is_none() && !self.under_way.is_empty() {
            self.go_on().await;
        }
        self.verdict.take()
    }

    async fn finish(mut self) {
        while !self.under_way.is_empty() {
            self.go_on().await;
        }
    }

    /// Waits for outcomes, and reports them to the quorum.
    async fn go_on(&mut self) {
        let heard = poll_fn(|cx| self.poll_heard(cx)).await;
        let shared = Arc::clone(&self.shared);
        let now = shared.clock.now();
        let mut quorum = shared.quorum();
        for (sent, outcome) in heard {
            quorum.heard(now, sent, outcome);
        }
        self.take_outputs(&mut quorum);
        shared.notify_if_quiet(&quorum);
    }

    /// All outputs belong to this request: the quorum has been locked since it was changed for it.
    fn take_outputs(&mut self, quorum: &mut Quorum) {
        while let Some(output) = quorum.poll() {
            match output {
                Output::Send(sent) => {
                    let (shared, node) = (Arc::clone(&self.shared), sent.node.0);
                    let (ask, within) = (sent.ask.clone(), sent.within);
                    let outcome = Box::pin(async move { shared.nodes[node].ask(&ask, within).await });
                    self.under_way.push((sent, outcome));
                }
                Output::Done(id, verdict) if id == self.id => self.verdict = Some(verdict),
                // The verdict of a pass that the quorum began by itself, which has no caller.
                Output::Done(..) => {}
            }
        }
    }

    /// All outcomes that are ready, at least one. Not `FuturesUnordered`: after it has polled everything, it wakes its task once
    /// more. The client's driver holds many of these and would yield after two of them, so requests that could leave in one
    /// write would leave in many.
    fn poll_heard(&mut self, cx: &mut Context<'_>) -> Poll<Vec<(Outgoing, Outcome)>> {
        let mut heard = Vec::new();
        let mut index = 0;
        while let Some((_, outcome)) = self.under_way.get_mut(index) {
            match outcome.as_mut().poll(cx) {
                Poll::Ready(outcome) => heard.push((self.under_way.remove(index).0, outcome)),
                Poll::Pending => index += 1,
            }
        }
        if heard.is_empty() { Poll::Pending } else { Poll::Ready(heard) }
    }
}

/// A run that is dropped, or whose runtime has ended, hears no more outcomes.
impl<N> Drop for Run<N> {
    fn drop(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        let mut quorum = self.shared.quorum();
        self.under_way.drain(..).for_each(|(sent, _)| quorum.forget(now, sent));
        self.shared.notify_if_quiet(&quorum);
    }
}

impl<N: AsyncQuorumNode> Backend for Redlock<N> {
    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn listen(&self, sink: EventSink) {
        let majority = self.shared.quorum().majority();
        hints::listen(&self.shared.nodes, majority, &sink);
    }
}

#[async_trait]
impl<N: AsyncQuorumNode> AsyncBackend for Redlock<N> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        let Shared { nodes, quorum, quiet, clock } = &*self.shared;
        let nodes = nodes.iter().map(AsyncQuorumNode::for_keeper).collect();
        let (quorum, quiet, clock) = (Arc::clone(quorum), Arc::clone(quiet), Arc::clone(clock));
        Arc::new(Self { shared: Arc::new(Shared { nodes, quorum, quiet, clock }) })
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

    async fn flush(&self, within: Duration) {
        let settled = async {
            loop {
                let quiet = self.shared.quiet.notified();
                if self.shared.quorum().is_quiet() {
                    return;
                }
                quiet.await;
            }
        };
        _ = tokio::time::timeout(within, settled).await;
    }
}
