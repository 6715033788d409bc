//! One leader among several machines, with fail-over.

use std::ops::Deref;
use std::time::{Duration, Instant};

use lock_core::AcquireError;
use lock_host::{HoldError, Setting};

use super::waiting::pause;
use super::{Client, Guard, Mutex, both};
use crate::election::{ElectionPlan, Leader, LeaderView, Leading, READ_WITHIN, cannot_observe};
use crate::errors::ObserveError;

/// One leader among several machines, with fail-over. Made by [`Kit::election`](super::Kit::election).
///
/// Candidates [`campaign`](Self::campaign), and one of them leads until it resigns, dies, or cannot renew its lease. A leader that
/// cannot renew steps down before the lease can expire. At most one leads while the assumptions of the store hold and the work stops
/// within the [`grace`](Self::grace): it awaits something, or checks whether it still leads, often enough.
///
/// A suspended machine notices a loss when it resumes. A virtual machine that its host pauses may have a clock that stands still
/// meanwhile, and its leader continues. So the resource has to check the [`term`](Leading::term), like any fencing token: a new leader
/// first raises the fence to its [`write_token`](Leading::write_token), and then reads.
///
/// The lock of the election is the mutex of its name, so the usual tools show the leader. For observers of the client and in metrics, a term
/// that ends early is a loss, even if the lease itself lasts. Resigning, `close` and a long wait of a candidate are not reported as unusual.
///
/// [`run_while_leader`](Self::run_while_leader) has an example.
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until a candidate campaigns"]
pub struct Election {
    client: Client,
    plan: ElectionPlan,
}

#[both]
impl Election {
    pub(super) fn new(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), plan: ElectionPlan::new(name) }
    }

    ::lock_host::option_setters!(all);

    ::lock_host::option_setters!(
        each "Sets how long a campaign waits to be elected; without limit if not set. It also waits for an unreachable store."
    );

    /// Sets the time that is reserved for stopping the work: a sixth of the ttl if not set, at most 5 s. A leader whose lease is not renewed
    /// steps down this time and a margin (a tenth of the ttl, 250 ms to 1 s) before the lease can expire.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.plan.grace = Some(grace);
        self
    }

    /// Sets how often an observer polls; once a second if not set, and at least 10 ms apart.
    pub fn pace(mut self, pace: Duration) -> Self {
        self.plan.set_pace(pace);
        self
    }

    fn set(mut self, setting: Setting) -> Self {
        self.plan.set(setting);
        self
    }

    fn mutex(&self) -> Mutex {
        self.client.mutex(&self.plan.name).options(self.plan.options.clone())
    }

    /// Waits to be elected, even while the store is unreachable.
    ///
    /// # Errors
    /// As [`Mutex::acquire`]; `Invalid` also for a ttl that leaves too little time to lead.
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`].
    ///
    /// # Blocking
    /// As [`Mutex::acquire`], and for an operation timeout.
    pub async fn campaign(&self) -> Result<Leadership, AcquireError> {
        let budget = self.plan.budget(&self.client.capabilities())?;
        let guard = self.mutex().acquire().await?;
        if !budget.is_enough(guard.remaining()) {
            // Handed over by another holder, or granted late. If this fails, the leadership is over at once.
            _ = guard.renew().await;
        }
        Ok(Leadership(Leading::new(guard, budget)))
    }

    /// The leader, according to the store: a snapshot from one request. `None` if there is none.
    ///
    /// # Errors
    /// `Invalid` for an invalid name; `Backend` if the store failed, or cannot show holders.
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Blocking
    /// For at most a second.
    pub async fn leader(&self) -> Result<Option<Leader>, ObserveError> {
        let mut view = LeaderView::default();
        self.read(&mut view).await?;
        Ok(view.leader)
    }

    /// Observes the leader, without being a candidate. [`Leaders::changed`] sends the first request. At a quorum, a majority of the nodes has
    /// to answer.
    pub fn observe(&self) -> Leaders {
        Leaders { election: self.clone(), view: LeaderView::default(), read_at: None, has_ended: false }
    }

    /// Polls once. True if the result is new.
    async fn read(&self, view: &mut LeaderView) -> Result<bool, ObserveError> {
        let lock = self.client.mutex(&self.plan.name).member()?;
        if lock.close_signal.is_over() {
            return Err(ObserveError::Closed);
        }
        let inspect = self.client.inspect().ok_or_else(|| cannot_observe(&self.client.capabilities()))?;
        Ok(view.update(inspect.holder(&lock.name, READ_WITHIN).await?))
    }
}

/// Proof that this machine leads, until it resigns, steps down or loses the lease. Dropping it resigns: in async code in the background,
/// and otherwise by blocking for at most an operation timeout.
///
/// It can be shared between tasks or threads in an [`Arc`](std::sync::Arc).
#[derive(Debug)]
#[must_use = "the leader resigns when this is dropped"]
pub struct Leadership(Leading<Guard>);

#[both]
impl Leadership {
    /// Resigns: another candidate can be elected at once. Success means that no loss was detected until now.
    ///
    /// # Errors
    /// As [`Guard::release`].
    ///
    /// # Cancel safety
    /// As [`Guard::release`].
    ///
    /// # Blocking
    /// As [`Guard::release`].
    pub async fn resign(self) -> Result<(), HoldError> {
        self.0.guard.release().await
    }
}

impl Deref for Leadership {
    type Target = Leading<Guard>;

    fn deref(&self) -> &Leading<Guard> {
        &self.0
    }
}

/// Observes the leader. Made by [`Election::observe`]. It keeps only the last state: a slow reader misses leaders in
/// between, but not the last one.
#[derive(Debug)]
pub struct Leaders {
    election: Election,
    view: LeaderView,
    /// When the last poll began. Kept across calls: one that is dropped before the next poll is due must not delay it.
    read_at: Option<Instant>,
    /// The client was closed, and this was reported.
    has_ended: bool,
}

#[both]
impl Leaders {
    /// Waits until it sees another leader or term, or none, and returns that. The first call returns the present state.
    ///
    /// It polls at its [`pace`](Election::pace), with one request each time. The result may be out of date already:
    /// send the term along when you act on it.
    ///
    /// # Errors
    /// `Invalid` for an invalid name; `Backend` if the store failed, or cannot show holders. After a transient error, call it again.
    /// `Closed` as soon as the client is closed.
    ///
    /// # Cancel safety
    /// Can be dropped and called again; nothing is missed.
    ///
    /// # Blocking
    /// Until that changes.
    pub async fn changed(&mut self) -> Result<Option<Leader>, ObserveError> {
        while !self.look_on_time().await? {}
        Ok(self.view.leader.clone())
    }

    /// Polls once more, not sooner than the pace says. True if the result is new.
    pub(super) async fn look_on_time(&mut self) -> Result<bool, ObserveError> {
        if let Some(read_at) = self.read_at {
            let Election { client, plan } = &self.election;
            pause(&client.mutex(&plan.name).member()?, plan.pace.saturating_sub(read_at.elapsed())).await?;
        }
        self.read_at = Some(Instant::now());
        self.election.read(&mut self.view).await
    }

    /// The next item of all that [`changed`](Self::changed) returns, which end after `Closed`.
    pub(super) async fn next_change(&mut self) -> Option<Result<Option<Leader>, ObserveError>> {
        if self.has_ended {
            return None;
        }
        let seen = self.changed().await;
        self.has_ended = seen == Err(ObserveError::Closed);
        Some(seen)
    }

    /// The leader at the last poll; `None` if there was none, or no poll yet.
    pub fn leader(&self) -> Option<&Leader> {
        self.view.leader.as_ref()
    }
}
