//! One leader among several machines, and another one when it fails.

use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use std::time::Duration;

use lock_blocking::{Client, Guard, Mutex};
use lock_core::AcquireError;
use lock_host::{HoldError, NAP_MAX, SharedClock};

use crate::blocking::pause::pause;
use crate::election::{LOOK_WITHIN, Leader, Leading, Plan, Sight, cannot_observe, election_setters, follows};
use crate::errors::{ElectionError, LeadershipLost, ObserveError};

/// One leader among several machines, and another one when it fails. Made by [`Kit::election`](super::Kit::election).
///
/// Candidates [`campaign`](Self::campaign), and one of them leads until it resigns, dies, or cannot renew its lease. A leader that
/// cannot renew steps down before the lease can end: so by the clocks of all machines, it has stopped when the next one
/// begins, if its work checks often enough whether it still leads. A leader whose whole machine is suspended notices nothing
/// until it resumes. A virtual machine that its host pauses may have a clock that stands still meanwhile: its leader then goes on.
/// The resource has to check the [`term`](Leading::term), as it checks any fencing token.
/// So a new leader first raises the fence of what it will change to its [`write_token`](Leading::write_token), and then reads.
///
/// The lock of the election is the mutex of its name, so the usual tools show who leads.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::blocking; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
/// use std::ops::ControlFlow;
/// use leasehold::blocking::Kit;
///
/// let election = locks.election("scheduler").why("web-3:8080");
/// let mut rounds = 0;
/// let done = election.run_while_leader(|leadership| {
///     println!("raise the fence to {}, then read", leadership.write_token());
///     while rounds < 3 {
///         if leadership.check().is_err() {
///             return ControlFlow::Continue(()); // campaign again
///         }
///         rounds += 1; // ... schedule
///     }
///     ControlFlow::Break("done")
/// });
/// assert_eq!(done?, "done");
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
    /// # Blocking
    /// As [`Mutex::acquire`], and for an operation timeout.
    pub fn campaign(&self) -> Result<Leadership, AcquireError> {
        let (budget, mutex) = (self.plan.budget(&self.client.capabilities())?, self.mutex());
        let clock = mutex.member()?.clock;
        let guard = mutex.acquire()?;
        if !budget.is_enough(guard.remaining()) {
            // Handed over by another holder, or granted late. If this fails, the leadership is over at once.
            _ = guard.renew();
        }
        Ok(Leadership { leading: Leading::new(guard, budget), clock })
    }

    /// Campaigns, works while it leads, and campaigns again, until the work says that it is enough.
    ///
    /// A thread cannot be stopped: work that takes long has to [`check`](Leading::check) the leadership between its steps, or to
    /// have another thread wait for its [`lost`](Leadership::lost), and to return in time. A leader that cannot renew finds it
    /// lost before the lease can end, by the [`grace`](Self::grace) and a margin. Then the campaign begins again when the work
    /// returns `Continue`. When the work returns `Break`, the leader resigns, and this returns the value.
    ///
    /// The work may pass clones of the leadership to other threads. The leader resigns when the last clone is dropped.
    ///
    /// # Errors
    /// `Acquire` if a campaign fails; store errors that may pass are waited out. `Lost` if the work returned `Break`, but did not
    /// lead to its end.
    ///
    /// # Blocking
    /// Until the work returns `Break`.
    pub fn run_while_leader<T>(
        &self,
        mut work: impl FnMut(Arc<Leadership>) -> ControlFlow<T>,
    ) -> Result<T, ElectionError> {
        loop {
            let leadership = Arc::new(self.campaign()?);
            let said = leadership.check().is_ok().then(|| work(Arc::clone(&leadership)));
            let led = leadership.check();
            let resigned = Arc::into_inner(leadership).map_or(Ok(()), Leadership::resign);
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
    /// # Blocking
    /// For at most a second.
    pub fn leader(&self) -> Result<Option<Leader>, ObserveError> {
        let mut sight = Sight::default();
        self.look(&mut sight)?;
        Ok(sight.leader)
    }

    /// Observes who leads, without being a candidate. Nothing is sent before [`Leaders::changed`].
    pub fn observe(&self) -> Leaders {
        Leaders { election: self.clone(), sight: Sight::default(), has_looked: false, has_ended: false }
    }

    /// Looks once. True if what it sees is new.
    fn look(&self, sight: &mut Sight) -> Result<bool, ObserveError> {
        let lock = self.client.mutex(&self.plan.name).member()?;
        if lock.closing.is_over() {
            return Err(ObserveError::Closed);
        }
        let inspect = self.client.inspect().ok_or_else(|| cannot_observe(&self.client.capabilities()))?;
        Ok(sight.takes(inspect.holder(&lock.name, LOOK_WITHIN)?))
    }
}

/// Proof that this machine leads, until it resigns, steps down or loses the lease. Dropping it resigns, and blocks for at most
/// an operation timeout.
///
/// It can be shared between threads in an [`Arc`].
#[derive(Debug)]
#[must_use = "the leader resigns when this is dropped"]
pub struct Leadership {
    leading: Leading<Guard>,
    clock: SharedClock,
}

impl Leadership {
    /// Waits until this machine does not lead any more, and returns the reason. If the lease is not renewed, this is before it
    /// can end, by the [`grace`](Election::grace) and a margin.
    ///
    /// # Blocking
    /// For as long as this machine leads, so do not call it from the thread that does the work.
    pub fn lost(&self) -> LeadershipLost {
        loop {
            if let Some(lost) = self.lost_within(NAP_MAX) {
                return lost;
            }
        }
    }

    /// Waits until this machine does not lead any more, but for at most `patience`.
    ///
    /// # Blocking
    /// For at most `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<LeadershipLost> {
        let until = self.clock.now() + patience;
        loop {
            let left = match self.left() {
                Ok(left) => left,
                Err(lost) => return Some(lost),
            };
            let patience = until.since(self.clock.now());
            if patience.is_zero() {
                return None;
            }
            _ = self.guard.lost_within(left.min(patience));
        }
    }

    /// Resigns: another candidate can be elected at once. Success means that no loss was detected until now.
    ///
    /// # Errors
    /// As [`Guard::release`].
    ///
    /// # Blocking
    /// As [`Guard::release`].
    pub fn resign(self) -> Result<(), HoldError> {
        self.leading.guard.release()
    }
}

impl Deref for Leadership {
    type Target = Leading<Guard>;

    fn deref(&self) -> &Leading<Guard> {
        &self.leading
    }
}

/// Observes who leads. Made by [`Election::observe`]. It keeps only the last state, so one that is read slowly misses leaders in
/// between, and never a later one.
///
/// As an iterator, it returns what [`changed`](Self::changed) returns, again and again, and ends after `Closed`.
#[derive(Debug)]
pub struct Leaders {
    election: Election,
    sight: Sight,
    has_looked: bool,
    has_ended: bool,
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
    /// # Blocking
    /// Until that changes.
    pub fn changed(&mut self) -> Result<Option<Leader>, ObserveError> {
        while !self.look_again()? {}
        Ok(self.sight.leader.clone())
    }

    /// Looks once more, not sooner than the [`pace`](Election::pace) says, and returns whether it saw something new. For a thread
    /// that has to look at other things in between.
    ///
    /// # Errors
    /// As [`changed`](Self::changed).
    ///
    /// # Blocking
    /// For the pace, and at most a second longer.
    pub fn look_again(&mut self) -> Result<bool, ObserveError> {
        if std::mem::replace(&mut self.has_looked, true) {
            pause(&self.election.client.mutex(&self.election.plan.name).member()?, self.election.plan.pace)?;
        }
        self.election.look(&mut self.sight)
    }

    /// Who led when it was last looked; `None` if nobody did, or nothing was seen yet.
    pub fn leader(&self) -> Option<&Leader> {
        self.sight.leader.as_ref()
    }
}

impl Iterator for Leaders {
    type Item = Result<Option<Leader>, ObserveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let seen = (!self.has_ended).then(|| self.changed())?;
        self.has_ended = seen == Err(ObserveError::Closed);
        Some(seen)
    }
}
