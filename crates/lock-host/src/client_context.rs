//! The context that the stations of a client share.

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

/// The context that the stations of a client share, and the way of their outputs. Its alarms and its keeper end with it.
pub struct ClientContext<D> {
    /// Runs requests.
    pub driver: D,
    /// The settings that the stations use.
    pub policy: Arc<Policy>,
    /// The client's clock.
    pub clock: SharedClock,
    /// The leases to renew.
    pub renewals: Arc<RenewalQueue>,
    /// Draws the owners of leases.
    pub(crate) owners: Arc<Owners>,
    pub(crate) alarms: Alarms,
    pub(crate) observers: Option<Arc<Observers>>,
}

impl<D> ClientContext<D> {
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

impl<D> ClientContext<D> {
    /// Reports the answer to a request that no station asked for.
    pub fn answered<T>(&self, name: &LockName, answer: &Result<T, BackendError>) {
        let Some(observers) = &self.observers else { return };
        let events = PendingEvents::new(name.clone(), Arc::clone(observers));
        events.answered(self.clock.now(), answer.as_ref().err());
        events.notify();
    }
}

impl<D> Drop for ClientContext<D> {
    fn drop(&mut self) {
        self.renewals.end();
    }
}

impl<D> fmt::Debug for ClientContext<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientContext")
            .field("policy", &self.policy)
            .field("renewals", &self.renewals)
            .finish_non_exhaustive()
    }
}
