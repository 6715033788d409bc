//! One leader among several machines, and another one when it fails.

use std::ops::{ControlFlow, Deref};
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use futures_util::stream::{Stream, unfold};
use lock_async::{Client, Guard, Mutex};
use lock_core::AcquireError;
use lock_host::{HoldError, NAP_MAX};
use tokio::time::Instant;

use crate::election::{LOOK_WITHIN, Leader, Leading, Plan, Sight, cannot_observe, election_setters, follows};
use crate::errors::{ElectionError, LeadershipLost, ObserveError};
use crate::nonblocking::pause::pause;

/// One leader among several machines, and another one when it fails. Made by [`Kit::election`](super::Kit::election).
///
/// Candidates [`campaign`](Self::campaign), and one of them leads until it resigns, dies, or cannot renew its lease. A leader that
/// cannot renew steps down before the lease can end: so by the clocks of all machines, it has stopped when the next one
/// begins. A leader whose whole machine is suspended notices nothing until it resumes. A virtual machine that its host pauses may
/// have a clock that stands still meanwhile: its leader then goes on. The resource has to check the [`term`](Leading::term), as it
/// checks any fencing token.
/// So a new leader first raises the fence of what it will change to its [`write_token`](Leading::write_token), and then reads.
///
/// The lock of the election is the mutex of its name, so the usual tools show who leads.
///
/// # Examples
/// ```
/// # use lock_kit::nonblocking as leasehold;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// use std::ops::ControlFlow;
/// use leasehold::Kit;
///
/// let election = locks.election("scheduler").why("web-3:8080");
/// let leading = tokio::spawn(async move {
///     let led = election.run_while_leader(|leadership| async move {
///         println!("raise the fence to {}, then read", leadership.write_token());
///         println!("leads in term {}", leadership.term()); // ... schedule, until it is time to stop
///         ControlFlow::Break("done") // with `Continue`, it would campaign again
///     });
///     led.await
/// });
/// assert_eq!(leading.await??, "done");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until a candidate campaigns"]
pub struct Election {
    client: Client,
    plan: Plan,
}

impl Election {
    pub(super) fn new(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), plan: Plan::new(name) }
    }

    election_setters!();

    /// Waits to be elected, also while the store is away.
    ///
    /// # Errors
    /// As [`Mutex::acquire`]; `Invalid` also for a ttl that leaves too little time to lead.
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`].
    pub async fn campaign(&self) -> Result<Leadership, AcquireError> {
        let budget = self.plan.budget(&self.client.capabilities())?;
        let guard = self.mutex().acquire().await?;
        if !budget.is_enough(guard.remaining()) {
            // Handed over by another holder, or granted late. If this fails, the leadership is over at once.
            _ = guard.renew().await;
        }
        Ok(Leadership(Leading::new(guard, budget)))
    }

    /// Campaigns, works while it leads, and campaigns again, until the work says that it is enough.
    ///
    /// If the leadership is lost, the work is stopped (dropped at its next await point): before the lease can end, by the
    /// [`grace`](Self::grace) and a margin. So work that awaits something often enough never runs beside that of the next
    /// leader. Then the campaign begins again, as it does when the work returns `Continue`. When the work returns `Break`, the
    /// leader resigns, and this returns the value.
    ///
    /// The work may pass clones of the leadership to tasks that it spawns. They are not stopped with it, so each waits for
    /// [`lost`](Leadership::lost) itself. The leader resigns when the last clone is dropped.
    ///
    /// # Errors
    /// `Acquire` if a campaign fails; store errors that may pass are waited out. `Lost` if the work returned `Break`, but did not
    /// lead to its end.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and resigns or gives up the campaign in the background.
    pub async fn run_while_leader<T, F>(&self, mut work: impl FnMut(Arc<Leadership>) -> F) -> Result<T, ElectionError>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        loop {
            let leadership = Arc::new(self.campaign().await?);
            let said = match leadership.check() {
                // It could not be renewed when it was granted.
                Err(_) => None,
                Ok(()) => match select(pin!(leadership.lost()), pin!(work(Arc::clone(&leadership)))).await {
                    Either::Left(_) => None,
                    Either::Right((said, _)) => Some(said),
                },
            };
            let led = leadership.check();
            let resigned = match Arc::into_inner(leadership) {
                Some(leadership) => leadership.resign().await,
                None => Ok(()),
            };
            if let ControlFlow::Break(outcome) = follows(said, led, resigned) {
                return Ok(outcome?);
            }
        }
    }

    /// Who leads, according to the store: a snapshot from one request. `None` if nobody does.
    ///
    /// # Errors
    /// `Invalid` for an invalid name; `Backend` if the store failed, or cannot say it (`redlock://`).
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn leader(&self) -> Result<Option<Leader>, ObserveError> {
        let mut sight = Sight::default();
        self.look(&mut sight).await?;
        Ok(sight.leader)
    }

    /// Observes who leads, without being a candidate. Nothing is sent before [`Leaders::changed`].
    pub fn observe(&self) -> Leaders {
        Leaders { election: self.clone(), sight: Sight::default(), looked_at: None }
    }

    /// Looks once. True if what it sees is new.
    async fn look(&self, sight: &mut Sight) -> Result<bool, ObserveError> {
        let lock = self.client.mutex(&self.plan.name).member()?;
        if lock.closing.is_over() {
            return Err(ObserveError::Closed);
        }
        let inspect = self.client.inspect().ok_or_else(|| cannot_observe(&self.client.capabilities()))?;
        Ok(sight.takes(inspect.holder(&lock.name, LOOK_WITHIN).await?))
    }
}

/// Proof that this machine leads, until it resigns, steps down or loses the lease. Dropping it resigns in the background.
///
/// It can be shared between tasks in an [`Arc`].
#[derive(Debug)]
#[must_use = "the leader resigns when this is dropped"]
pub struct Leadership(Leading<Guard>);

impl Leadership {
    /// Waits until this machine does not lead any more, and returns the reason. If the lease is not renewed, this is before it
    /// can end, by the [`grace`](Election::grace) and a margin.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> LeadershipLost {
        loop {
            match self.left() {
                // The timers of the system stop while it is suspended, so no sleep is trusted for longer.
                Ok(left) => _ = tokio::time::timeout(left.min(NAP_MAX), self.guard.lost()).await,
                Err(lost) => return lost,
            }
        }
    }

    /// Resigns: another candidate can be elected at once. Success means that no loss was detected until now.
    ///
    /// # Errors
    /// As [`Guard::release`].
    ///
    /// # Cancel safety
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

/// Observes who leads. Made by [`Election::observe`]. It keeps only the last state, so one that is read slowly misses leaders in
/// between, and never a later one.
#[derive(Debug)]
pub struct Leaders {
    election: Election,
    sight: Sight,
    /// When the last look began. Kept across calls: those that are dropped before the next look is due must not put it off.
    looked_at: Option<Instant>,
}

impl Leaders {
    /// Waits until another leader or term is seen, or none, and returns it. The first call returns what it sees.
    ///
    /// It looks at its [`pace`](Election::pace), with one request each time. What it returns may be out of date already:
    /// send the term along when you act on it.
    ///
    /// # Errors
    /// `Invalid` for an invalid name; `Backend` if the store failed, or cannot say it (`redlock://`). After an error that may
    /// pass, call it again. `Closed` as soon as the client is closed.
    ///
    /// # Cancel safety
    /// Can be dropped and called again; nothing is missed.
    pub async fn changed(&mut self) -> Result<Option<Leader>, ObserveError> {
        loop {
            if let Some(looked_at) = self.looked_at {
                let Election { client, plan } = &self.election;
                pause(&client.mutex(&plan.name).member()?, plan.pace.saturating_sub(looked_at.elapsed())).await?;
            }
            self.looked_at = Some(Instant::now());
            if self.election.look(&mut self.sight).await? {
                return Ok(self.sight.leader.clone());
            }
        }
    }

    /// Who led when it was last looked; `None` if nobody did, or nothing was seen yet.
    pub fn leader(&self) -> Option<&Leader> {
        self.sight.leader.as_ref()
    }

    /// What [`changed`](Self::changed) returns, again and again.
    ///
    /// # Errors
    /// Each item may be an error of [`changed`](Self::changed). The stream goes on after it, but ends after `Closed`.
    pub fn into_stream(self) -> impl Stream<Item = Result<Option<Leader>, ObserveError>> + Send {
        unfold(Some(self), async |leaders| {
            let mut leaders = leaders?;
            let seen = leaders.changed().await;
            let goes_on = seen != Err(ObserveError::Closed);
            Some((seen, goes_on.then_some(leaders)))
        })
    }
}
