//! What a backend gives to the suite.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::SharedClock;
use tokio::runtime::Handle;

use crate::facade::Facade;
use crate::fault::{Faults, NoFaults};
use crate::need::Exemption;

/// One store for one test: how to reach it, let time pass for it, and break it. Dropping it removes everything.
pub trait Harness: Send + Sync + 'static {
    /// An unused store. Others may be on the same servers, if their locks have nothing to do with each other.
    fn new() -> Self
    where
        Self: Sized;

    /// An unused store on servers of its own, for a case that restarts them.
    fn alone() -> Self
    where
        Self: Sized,
    {
        Self::new()
    }

    /// A new client for tokio, with its own connections. Called outside the runtime, so it may block on it.
    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend>;

    /// A new client for plain threads, with connections of its own.
    fn blocking_backend(&self) -> Arc<dyn BlockingBackend>;

    /// A new client that faults do not affect, to see what the store really did.
    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        self.blocking_backend()
    }

    /// The clock of the clients.
    fn clock(&self) -> SharedClock;

    /// Lets time pass: moves the clock if it can be moved, and otherwise sleeps.
    fn elapse(&self, by: Duration);

    /// How much later than its ttl a lease may end that nobody renews: a store may count in whole seconds.
    fn ends_late(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether waiters act by themselves: they get the lock when a lease ends that nobody releases, and take the slots of their permits. The
    /// rules cannot foretell when, nor which slots.
    fn waiters_act(&self) -> bool {
        false
    }

    /// How to break the store.
    fn faults(&self) -> &dyn Faults {
        &NoFaults
    }

    /// The parts of the suite that do not apply, and why: exactly what this store or its harness cannot do.
    fn exempt(&self, facade: Facade) -> Vec<Exemption>;

    /// Where another process finds this store, if it can: [`Harness::attach`] reads it there.
    fn address(&self) -> Option<String> {
        None
    }

    /// The store of another process's harness, on the host's clock. Removes nothing.
    ///
    /// # Panics
    /// If the store is not shared between processes.
    fn attach(address: &str) -> Self
    where
        Self: Sized,
    {
        panic!("this store cannot be reached from another process, not even at {address}")
    }

    /// How long anything may take before a case fails.
    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }
}
