//! What the stations of a client share.

use std::fmt;
use std::io;

use lock_core::station::Owners;
use lock_core::{BackendError, Keeper, LockName, Policy};

use crate::alarms::Alarms;
use crate::clock::SharedClock;
use crate::host::{random_u64, secret};
use crate::observer::SharedObserver;
use crate::pending_events::{Observers, PendingEvents};
use crate::renewals::RenewalQueue;
use crate::sync::Arc;

/// What the stations of a client share, and where their outputs go. Its alarms and its keeper end with it.
pub struct Ports<D> {
    /// What runs requests.
    pub driver: D,
    /// The settings that the stations use.
    pub policy: Arc<Policy>,
    /// What the client reads the time from.
    pub clock: SharedClock,
    /// What the keeper renews.
    pub renewals: Arc<RenewalQueue>,
    /// What the stations draw the owners of their leases from.
    pub(crate) owners: Arc<Owners>,
    pub(crate) alarms: Alarms,
    pub(crate) observers: Option<Arc<Observers>>,
}

impl<D> Ports<D> {
    /// Starts the alarms. `wake` wakes the keeper, which is for the facade to start.
    ///
    /// # Errors
    /// If a thread cannot be started, or if the system's random source fails.
    pub fn new(
        driver: D,
        policy: Policy,
        clock: SharedClock,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let alarms = Alarms::start(Arc::clone(&clock))?;
        let renewals = RenewalQueue::new(Keeper::new(policy, random_u64()?), Arc::clone(&clock), wake);
        let (policy, owners) = (Arc::new(policy), Arc::new(Owners::new(secret()?)));
        Ok(Self { driver, policy, clock, renewals, owners, alarms, observers: None })
    }

    /// The same, with observers of what happens to the locks.
    #[must_use]
    pub fn observed_by(mut self, observers: Vec<SharedObserver>) -> Self {
        self.observers = Observers::new(observers);
        self
    }
}

impl<D> Ports<D> {
    /// Reports the answer to a request that no station asked for.
    pub fn answered<T>(&self, name: &LockName, answer: &Result<T, BackendError>) {
        let Some(observers) = &self.observers else { return };
        let events = PendingEvents::new(name.clone(), Arc::clone(observers));
        events.answered(self.clock.now(), answer.as_ref().err());
        events.notify();
    }
}

impl<D> Drop for Ports<D> {
    fn drop(&mut self) {
        self.renewals.end();
    }
}

impl<D> fmt::Debug for Ports<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").field("policy", &self.policy).field("renewals", &self.renewals).finish_non_exhaustive()
    }
}
