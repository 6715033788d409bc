//! What a backend gives to the suite.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::SharedClock;
use tokio::runtime::Handle;

use crate::{Colour, Exemption};

/// One store for one test: how to reach it, let time pass for it, and break it. Dropping it clears everything away.
pub trait Harness: Send + Sync + 'static {
    /// A store that nobody has used.
    fn new() -> Self
    where
        Self: Sized;

    /// A new client for tokio, with connections of its own. Called outside of the runtime, which may be blocked on.
    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend>;

    /// A new client for plain threads, with connections of its own.
    fn blocking_backend(&self) -> Arc<dyn BlockingBackend>;

    /// A new client that faults do not strike, to see what the store really did.
    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        self.blocking_backend()
    }

    /// The clock of the clients.
    fn clock(&self) -> SharedClock;

    /// Lets time pass: moves the clock where it can be moved, else sleeps.
    fn elapse(&self, by: Duration);

    /// What can be broken.
    fn faults(&self) -> &dyn Faults {
        &NoFaults
    }

    /// What of the suite does not apply, and why: exactly what this store or its harness cannot do.
    fn exempt(&self, colour: Colour) -> Vec<Exemption>;

    /// Where another process finds this store, if it can: [`Harness::attach`] reads it there.
    fn address(&self) -> Option<String> {
        None
    }

    /// The store of another process's harness, on the host's clock. Clears nothing away.
    ///
    /// # Panics
    /// Where the store is not shared between processes.
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

/// What can happen to a store or to the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Connections break and new ones are refused.
    Cut,
    /// Nothing answers. Requests may take effect later.
    Hang,
    /// The store does what it is asked; its answers are lost.
    LoseReplies,
    /// The store restarts with its data.
    RestartWithData,
    /// The store restarts with nothing.
    RestartEmpty,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cut, Self::Hang, Self::LoseReplies, Self::RestartWithData, Self::RestartEmpty];
}

/// Breaks a store on command. Faults strike all clients but the bystanders; one at a time.
pub trait Faults: Sync {
    /// What can be done.
    fn offers(&self) -> &[Fault];

    /// Begins a fault. A restart is over when this returns.
    fn begin(&self, fault: Fault);

    /// How many requests, connections or servers the present or last fault has struck.
    fn fired(&self) -> u64;

    /// Ends the present fault.
    fn end(&self);
}

/// For a store that cannot be broken.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFaults;

impl Faults for NoFaults {
    fn offers(&self) -> &[Fault] {
        &[]
    }

    fn begin(&self, fault: Fault) {
        panic!("this harness does not offer the fault {fault}");
    }

    fn fired(&self) -> u64 {
        0
    }

    fn end(&self) {}
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cut => "cut connections",
            Self::Hang => "a store that hangs",
            Self::LoseReplies => "lost replies",
            Self::RestartWithData => "a restart with data",
            Self::RestartEmpty => "a restart without data",
        })
    }
}
