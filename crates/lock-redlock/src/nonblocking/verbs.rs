//! What a quorum is asked, in both forms: compiled for threads as well.

use std::sync::Arc;
use std::time::Duration;

#[both]
use lock_core::AsyncBackend;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::node::Inspection;
use lock_core::{
    Answer, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, Location, LockName,
    Note, ReleaseRequest, Released, Renewed, Ttl,
};
use lock_host::HostClock;

use super::{Node, Redlock, both};
use crate::inspect::{self, Listing};
use crate::quorum::{Answers, Purpose, Report, Request};
use crate::{GRACE, capabilities, hints, location, no_latches};

#[both]
impl<N: Node> Redlock<N> {
    /// A quorum of these nodes. None is asked yet, and none votes before the first recovery [pass](Self::pass).
    ///
    /// # Errors
    /// `Config` for fewer than three nodes, or for one that is listed twice.
    ///
    /// # Blocking
    /// Only to start a thread for each node; it is an error of kind `Config` if this host cannot.
    pub fn of(nodes: Vec<N>, max_ttl: Ttl) -> Result<Self, BackendError> {
        Self::on_clock(nodes, max_ttl, Arc::new(HostClock))
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

    /// Looks which nodes count, if that is not known yet: those of another deployment must not answer. Returns how much time is left.
    async fn identified(&self, within: Duration) -> Result<Duration, BackendError> {
        if self.knows_its_nodes() {
            return Ok(within);
        }
        let begun = self.shared.clock.now();
        // It has up to three steps.
        self.pass(Purpose::Look, within / 4).await?;
        Ok(within.saturating_sub(self.shared.clock.now().since(begun)))
    }

    async fn inspect(&self, asks: Vec<Option<Inspection>>, within: Duration) -> Result<Answers, BackendError> {
        self.run(Request::Inspect(asks), within).await?.of_inspect()
    }

    /// Asks all nodes the same.
    async fn ask_all(&self, ask: &Inspection, within: Duration) -> Result<Answers, BackendError> {
        self.inspect(vec![Some(ask.clone()); self.shared.nodes.len()], within).await
    }

    /// Says of the leases that are gone who revoked them. It takes no more than half of the time that is left: the answers to the others
    /// have to arrive in time, too.
    async fn note_revocations(&self, leases: &[Lease], answers: &mut [Renewed], left: Duration) {
        let (gone, within) = (inspect::gone(leases, answers), (left / 2).saturating_sub(GRACE));
        if gone.is_empty() || within.is_zero() {
            return;
        }
        // Without an answer they are gone all the same.
        if let Ok(told) = self.ask_all(&Inspection::RevokedBy(gone), within).await {
            inspect::noted(answers, inspect::notes(&told));
        }
    }
}

impl<N: Node> Backend for Redlock<N> {
    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        location::locate(&self.shared.nodes, name)
    }

    fn listen(&self, sink: EventSink) {
        hints::listen(&self.shared.nodes, self.shared.nodes.len() / 2 + 1, &sink);
    }
}

#[both]
#[async_trait::async_trait]
impl<N: Node> AsyncBackend for Redlock<N> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self.on_keepers_connections()
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.run(Request::Acquire(claim.clone()), within).await?.of_acquire()
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let begun = self.shared.clock.now();
        let mut answers = self.run(Request::Renew(leases.to_vec()), within).await?.of_renew()?;
        let left = within.saturating_sub(self.shared.clock.now().since(begun));
        self.note_revocations(leases, &mut answers, left).await;
        Ok(answers)
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.run(Request::Release(request.clone()), within).await?.of_release()
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.run(Request::Fence(lease.clone()), within).await?.of_fence()
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        let within = self.identified(within).await?;
        let told = self.ask_all(&inspect::show([name.clone()]), within).await?.of_majority()?;
        Ok(inspect::entry(&told, name, 0))
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let mut listing = Listing::begin(self.shared.nodes.len(), query)?;
        let within = self.identified(within).await?;
        let named = self.inspect(listing.asks(), within / 2).await?;
        let Some(ask) = listing.find(named)? else { return Ok(listing.empty()) };
        Ok(listing.page(&self.ask_all(&ask, within / 2).await?.of_majority()?))
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        let within = self.identified(within).await?;
        let find = Inspection::Owners(name.clone(), token);
        let found = self.ask_all(&find, within / 2).await?.of_majority()?;
        let Some(ask) = inspect::revocation(&found, name, token, by) else { return Ok(Revoked::NotHeld) };
        inspect::revoked(&self.ask_all(&ask, within / 2).await?)
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        let within = self.identified(within).await?;
        let lease = [(name.clone(), highest)];
        let told = self.ask_all(&Inspection::RevokedBy(lease.into()), within).await?.of_majority()?;
        Ok(inspect::notes(&told).into_iter().flatten().next())
    }

    async fn latch(&self, _request: &latch::Request, _within: Duration) -> Result<Seen, BackendError> {
        Err(no_latches())
    }

    async fn flush(&self, within: Duration) {
        self.settle(within).await;
    }
}
