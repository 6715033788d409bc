//! The quorum for plain threads: one thread for each node, so that all are asked at once and each in order.

mod threads;

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::node::{BlockingQuorumNode, Inspection};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, Effect, ErrorKind, EventSink, Fenced,
    FencingToken, Lease, Location, LockName, Note, Operation, ReleaseRequest, Released, Renewed, Ttl,
};
use lock_host::{HostClock, SharedClock};

use crate::epochs::HostEpochs;
use crate::inspect::{self, Listing};
use crate::quorum::{Answers, Purpose, Quorum, Report, Request, Verdict, no_verdict};
use crate::{BACKEND, capabilities, hints, location, no_latches};
use threads::{Shared, State, serve};

/// A quorum for threads. The nodes' threads also finish what callers no longer wait for.
#[derive(Debug)]
pub struct Redlock<N> {
    shared: Arc<Shared<N>>,
}

impl<N: BlockingQuorumNode> Redlock<N> {
    /// A quorum of these nodes. None is asked yet, and none votes before the first recovery [pass](Self::pass).
    ///
    /// # Errors
    /// `Config` for fewer than three nodes, for one that is listed twice, or if this host cannot start threads.
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
        let state = Arc::new(Mutex::new(State { quorum, callers: BTreeMap::new() }));
        Self::with(nodes, state, Arc::default(), clock).map_err(|error| no_thread(&error))
    }

    fn with(nodes: Vec<N>, state: Arc<Mutex<State>>, quiet: Arc<Condvar>, clock: SharedClock) -> io::Result<Self> {
        let nodes: Arc<[N]> = nodes.into();
        let mut jobs = Vec::with_capacity(nodes.len());
        for index in 0..nodes.len() {
            let (sender, receiver) = mpsc::channel();
            let nodes = Arc::clone(&nodes);
            thread::Builder::new().name("leasehold-node".into()).spawn(move || serve(&nodes[index], &receiver))?;
            jobs.push(sender);
        }
        Ok(Self { shared: Arc::new(Shared { nodes, jobs, state, quiet, clock }) })
    }

    /// A quorum of these nodes, after a first recovery pass. Each step of that may take `within`.
    ///
    /// # Errors
    /// `Config` if nodes are misconfigured; the error of the nodes if most of them cannot be reached. A quorum that
    /// does not vote yet is not an error here, but each verb reports it.
    pub fn connect(nodes: Vec<N>, max_ttl: Ttl, within: Duration) -> Result<(Self, Report), BackendError> {
        let quorum = Self::of(nodes, max_ttl)?;
        let report = quorum.pass(Purpose::Watch, within)?;
        report.check_reached()?;
        Ok((quorum, report))
    }

    /// Runs a recovery pass. Each of its steps may take `within`.
    ///
    /// # Errors
    /// `Config` if nodes are misconfigured.
    pub fn pass(&self, purpose: Purpose, within: Duration) -> Result<Report, BackendError> {
        self.run(Request::Pass(purpose), within)?.of_pass()
    }

    /// Runs a request up to its verdict. The nodes' threads continue with the rest of it.
    fn run(&self, request: Request, within: Duration) -> Result<Verdict, BackendError> {
        let (caller, told) = mpsc::channel();
        self.shared.update(|state, now| {
            let id = state.quorum.begin(now, request, within);
            state.callers.insert(id, caller);
        });
        told.recv().map_err(|_| no_verdict())
    }

    /// Asks all nodes the same for an operator.
    fn ask_all(&self, ask: &Inspection, within: Duration) -> Result<Answers, BackendError> {
        let asks = vec![Some(ask.clone()); self.shared.nodes.len()];
        self.run(Request::Inspect(asks), within)?.of_inspect()
    }
}

fn no_thread(error: &io::Error) -> BackendError {
    let told = format!("this host cannot start a thread for each node: {error}");
    BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, told)
}

impl<N: BlockingQuorumNode> Backend for Redlock<N> {
    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        location::locate(&self.shared.nodes, name)
    }

    fn listen(&self, sink: EventSink) {
        let majority = self.shared.state().quorum.majority();
        hints::listen(&self.shared.nodes, majority, &sink);
    }
}

/// Waits for the nodes' threads, because what they still have to send would be lost if the process ended.
impl<N> Drop for Redlock<N> {
    fn drop(&mut self) {
        self.shared.settle(lock_core::FLUSH_WITHIN);
    }
}

impl<N: BlockingQuorumNode> BlockingBackend for Redlock<N> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        let Shared { nodes, state, quiet, clock, .. } = &*self.shared;
        let nodes = nodes.iter().map(BlockingQuorumNode::for_keeper).collect();
        match Self::with(nodes, Arc::clone(state), Arc::clone(quiet), Arc::clone(clock)) {
            Ok(another) => Arc::new(another),
            // If no more threads can be started, the keeper shares these.
            Err(_) => self,
        }
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.run(Request::Acquire(claim.clone()), within)?.of_acquire()
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let begun = self.shared.clock.now();
        let mut answers = self.run(Request::Renew(leases.to_vec()), within)?.of_renew()?;
        let gone = inspect::gone(leases, &answers);
        if !gone.is_empty() {
            let left = within.saturating_sub(self.shared.clock.now().since(begun));
            // Without an answer they are gone all the same.
            if let Ok(told) = self.ask_all(&Inspection::RevokedBy(gone), left) {
                inspect::noted(&mut answers, inspect::notes(&told));
            }
        }
        Ok(answers)
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.run(Request::Release(request.clone()), within)?.of_release()
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.run(Request::Fence(lease.clone()), within)?.of_fence()
    }

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        let told = self.ask_all(&inspect::show([name.clone()]), within)?.of_majority()?;
        Ok(inspect::entry(&told, name, 0))
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let mut listing = Listing::begin(self.shared.nodes.len(), query)?;
        let named = self.run(Request::Inspect(listing.asks()), within / 2)?.of_inspect()?;
        let Some(ask) = listing.find(named)? else { return Ok(listing.empty()) };
        Ok(listing.page(&self.ask_all(&ask, within / 2)?.of_majority()?))
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        let shown = self.ask_all(&inspect::show([name.clone()]), within / 2)?.of_majority()?;
        let Some(ask) = inspect::revocation(&shown, name, token, by) else { return Ok(Revoked::NotHeld) };
        inspect::revoked(&self.ask_all(&ask, within / 2)?)
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        let lease = [(name.clone(), highest)];
        let told = self.ask_all(&Inspection::RevokedBy(lease.into()), within)?.of_majority()?;
        Ok(inspect::notes(&told).into_iter().flatten().next())
    }

    fn latch(&self, _request: &latch::Request, _within: Duration) -> Result<Seen, BackendError> {
        Err(no_latches())
    }

    fn flush(&self, within: Duration) {
        self.shared.settle(within);
    }
}
