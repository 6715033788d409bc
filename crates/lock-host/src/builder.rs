//! The builder of clients, and their settings.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{Backend, Policy};

use crate::client_context::ClientContext;
use crate::clock::{HostClock, SharedClock};
use crate::measured;
use crate::observer::SharedObserver;
use crate::site::Driver;
use crate::stations::Stations;
use crate::traced;

/// A client that a [`Builder`] can make.
pub trait Build: Sized {
    /// The trait object of its backends, async or blocking.
    type Backend: Backend + ?Sized;

    /// Makes it.
    ///
    /// # Errors
    /// Those of starting threads.
    #[track_caller]
    fn build(settings: Settings<Self::Backend>) -> io::Result<Self>;
}

/// The settings of a client.
#[derive(Debug)]
pub struct Settings<B: ?Sized> {
    /// The store.
    pub backend: Arc<B>,
    /// The numbers that its stations decide by.
    pub policy: Policy,
    /// The clock.
    pub clock: SharedClock,
    /// The observers of its locks.
    pub observers: Vec<SharedObserver>,
}

impl<B: Backend + ?Sized> Settings<B> {
    /// The stations of a client, which hear the events of the store, without its keeper. `wake` wakes that.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn stations<D: Driver>(
        self,
        driver: D,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Arc<Stations<D>>> {
        let context = ClientContext::new(driver, self.policy, self.clock, wake)?;
        let stations = Stations::new(context.observed_by(self.observers));
        self.backend.listen(stations.sink());
        Ok(stations)
    }
}

/// Configures a client.
pub struct Builder<C: Build>(Settings<C::Backend>);

impl<C: Build> Builder<C> {
    /// The defaults for a store.
    pub fn new(backend: Arc<C::Backend>) -> Self {
        let policy = Policy::new(backend.capabilities());
        let store = policy.store.backend;
        let observers = [traced::observer(store), measured::observer(store)].into_iter().flatten().collect();
        Self(Settings { backend, policy, clock: Arc::new(HostClock), observers })
    }

    /// Uses another clock, such as the store's manual clock in a test.
    #[must_use]
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.0.clock = clock;
        self
    }

    /// Adds an observer, which is called for every event of this client's locks. Every observer gets all events.
    #[must_use]
    pub fn observer(mut self, observer: SharedObserver) -> Self {
        self.0.observers.push(observer);
        self
    }

    /// How long one request may take. The default is a sixth of the ttl, but at most a second.
    #[must_use]
    pub fn op_timeout(mut self, op_timeout: Option<Duration>) -> Self {
        self.0.policy.op_timeout = op_timeout;
        self
    }

    /// How many times in a row a lease is passed on between waiters of this client, without a request to the store, before waiters of
    /// other clients get their turn; 16 if not set. 0 disables this local hand-over.
    #[must_use]
    pub fn chain(mut self, chain: u32) -> Self {
        self.0.policy.chain = chain;
        self
    }

    /// Makes the client; an async one on the present tokio runtime.
    ///
    /// # Errors
    /// Those of starting two threads.
    ///
    /// # Panics
    /// If the client is async and this is called outside a tokio runtime. The panic points at the caller.
    #[track_caller]
    pub fn build(self) -> io::Result<C> {
        C::build(self.0)
    }
}

impl<C: Build<Backend: fmt::Debug>> fmt::Debug for Builder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Builder").field(&self.0).finish()
    }
}
