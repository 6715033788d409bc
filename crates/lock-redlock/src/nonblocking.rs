//! The quorum for tokio.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use lock_core::node::AsyncQuorumNode;
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, Lease, Moment, ReleaseRequest,
    Released, Renewed, Ttl,
};
use lock_host::{HostClock, SharedClock};
use tokio::sync::Notify;

use crate::quorum::{Acquire, Errand, Guard, Letter, NodeId, Outcome, Purpose, Quorum, Release, Renew, Report, Verify};
use crate::{GUARD_WITHIN, hints, no_randomness, no_verdict, random_epochs};

/// A quorum, used from tokio: every node over one connection in order, and another one for the keeper.
#[derive(Debug)]
pub struct Redlock<N> {
    shared: Arc<Shared<N>>,
}

#[derive(Debug)]
struct Shared<N> {
    nodes: Vec<N>,
    quorum: Arc<Mutex<Quorum>>,
    /// Told when nothing is under way any more.
    quiet: Arc<Notify>,
    clock: SharedClock,
}

impl<N: AsyncQuorumNode> Redlock<N> {
    /// Of these nodes, without asking any: nobody votes until the guard has [passed](Self::pass).
    ///
    /// # Errors
    /// `Config` for less than three nodes, or one twice.
    pub fn of(nodes: Vec<N>, max_ttl: Ttl) -> Result<Self, BackendError> {
        Self::on_clock(nodes, max_ttl, Arc::new(HostClock))
    }

    /// The same on a clock of the caller's.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on_clock(nodes: Vec<N>, max_ttl: Ttl, clock: SharedClock) -> Result<Self, BackendError> {
        let addresses: Vec<_> = nodes.iter().map(|node| node.address().to_owned()).collect();
        let quorum = Arc::new(Mutex::new(Quorum::new(&addresses, max_ttl)?));
        Ok(Self { shared: Arc::new(Shared { nodes, quorum, quiet: Arc::default(), clock }) })
    }

    /// Of these nodes, after a first pass of the guard: all are asked, each for `within` at most.
    ///
    /// # Errors
    /// `Config` where nodes are not what they should be, whatever most nodes say if most cannot be reached. A quorum that
    /// does not vote yet is no error: what is asked of it says so.
    ///
    /// # Cancel safety
    /// Harmless when dropped: each step of a pass may be the last.
    pub async fn connect(nodes: Vec<N>, max_ttl: Ttl, within: Duration) -> Result<(Self, Report), BackendError> {
        let quorum = Self::of(nodes, max_ttl)?;
        let report = quorum.pass(Purpose::Watch, within).await?;
        report.check_reached()?;
        Ok((quorum, report))
    }

    /// Has the guard pass.
    ///
    /// # Errors
    /// `Config` where nodes are not what they should be.
    ///
    /// # Cancel safety
    /// Harmless when dropped: each step of a pass may be the last.
    pub async fn pass(&self, purpose: Purpose, within: Duration) -> Result<Report, BackendError> {
        let epochs = random_epochs(self.shared.nodes.len()).map_err(|error| no_randomness(&error))?;
        self.verdict(|quorum, now| Guard::begin(quorum, now, purpose, within, epochs)).await
    }

    /// Runs a verb, and has the guard pass after it where it is time.
    async fn run<T, E>(&self, begin: impl FnOnce(&mut Quorum, Moment) -> E) -> Result<T, BackendError>
    where
        E: Errand<Verdict = Result<T, BackendError>>,
    {
        let verdict = self.verdict(begin).await;
        self.guard();
        verdict
    }

    /// Runs an errand up to its verdict; what is left of it goes on in the background.
    async fn verdict<T, E>(&self, begin: impl FnOnce(&mut Quorum, Moment) -> E) -> Result<T, BackendError>
    where
        E: Errand<Verdict = Result<T, BackendError>>,
    {
        let errand = begin(&mut self.shared.quorum(), self.shared.clock.now());
        let mut course = self.course(errand);
        let verdict = course.go_on().await;
        if !course.is_done() {
            course.finish();
        }
        verdict.unwrap_or_else(|| Err(no_verdict()))
    }

    /// Has the guard pass in the background, where it is time.
    fn guard(&self) {
        let now = self.shared.clock.now();
        let mut quorum = self.shared.quorum();
        if quorum.wants_guard(now)
            && let Ok(epochs) = random_epochs(self.shared.nodes.len())
        {
            let errand = Guard::begin(&mut quorum, now, Purpose::Watch, GUARD_WITHIN, epochs);
            drop(quorum);
            self.course(errand).finish();
        }
    }

    fn course<E: Errand>(&self, errand: E) -> Course<N, E> {
        Course { shared: Arc::clone(&self.shared), errand, under_way: Vec::new(), ready: VecDeque::new() }
    }
}

impl<N> Shared<N> {
    fn quorum(&self) -> MutexGuard<'_, Quorum> {
        self.quorum.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An errand that is being run.
struct Course<N, E> {
    shared: Arc<Shared<N>>,
    errand: E,
    /// In the order in which they were written, for that is the order in which a node has to get its own.
    under_way: Vec<(NodeId, BoxFuture<'static, (Letter, Outcome)>)>,
    /// What has come of some of them.
    ready: VecDeque<(Letter, Outcome)>,
}

impl<N: AsyncQuorumNode, E: Errand> Course<N, E> {
    fn is_done(&self) -> bool {
        self.under_way.is_empty() && self.ready.is_empty()
    }

    /// Goes on to the end in the background.
    fn finish(mut self) {
        tokio::spawn(async move { while self.go_on().await.is_some() {} });
    }

    /// Goes on up to the verdict, or to the end if that fell before.
    async fn go_on(&mut self) -> Option<E::Verdict> {
        loop {
            while let Some(letter) = self.errand.next_letter() {
                let shared = Arc::clone(&self.shared);
                let node = letter.node;
                let outcome = Box::pin(async move {
                    let outcome = shared.nodes[letter.node.0].ask(&letter.ask, letter.within).await;
                    (letter, outcome)
                });
                self.under_way.push((node, outcome));
            }
            if let Some(verdict) = self.errand.take_verdict() {
                return Some(verdict);
            }
            let (letter, outcome) = poll_fn(|cx| self.poll_next(cx)).await?;
            let now = self.shared.clock.now();
            let mut quorum = self.shared.quorum();
            self.errand.heard(&mut quorum, now, &letter, outcome);
            if quorum.is_quiet() {
                self.shared.quiet.notify_waiters();
            }
        }
    }

    /// The next outcome, or none if nothing is under way. Not `FuturesUnordered`: that wakes its task once more when it has
    /// polled all that it holds, and the client's driver, which holds many of these, then yields after two of them, so
    /// that what could go out together goes out in small portions.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Letter, Outcome)>> {
        if self.ready.is_empty() {
            let ready = &mut self.ready;
            self.under_way.retain_mut(|(_, outcome)| match outcome.as_mut().poll(cx) {
                Poll::Ready(heard) => {
                    ready.push_back(heard);
                    false
                }
                Poll::Pending => true,
            });
        }
        match self.ready.pop_front() {
            None if !self.under_way.is_empty() => Poll::Pending,
            heard => Poll::Ready(heard),
        }
    }
}

/// A dropped course, or one whose runtime has ended, hears nothing any more.
impl<N, E> Drop for Course<N, E> {
    fn drop(&mut self) {
        let mut quorum = self.shared.quorum();
        let unheard = self.ready.iter().map(|(letter, _)| letter.node);
        self.under_way.iter().map(|(node, _)| *node).chain(unheard).for_each(|node| quorum.forget(node));
        if quorum.is_quiet() {
            self.shared.quiet.notify_waiters();
        }
    }
}

impl<N: AsyncQuorumNode> Backend for Redlock<N> {
    fn capabilities(&self) -> Capabilities {
        crate::capabilities()
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
        self.run(|quorum, now| Acquire::begin(quorum, now, claim, within)).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.run(|quorum, now| Renew::begin(quorum, now, leases, within)).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.run(|quorum, now| Release::begin(quorum, now, request, within)).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.run(|quorum, now| Verify::begin(quorum, now, lease, within)).await
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
