//! What can happen to a store, and what makes it happen.

use std::fmt;

/// What can happen to a store or to the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Connections break and new ones are refused.
    Cut,
    /// Nothing answers. Requests may take effect later.
    Hang,
    /// The store carries out requests; its answers are lost.
    LoseReplies,
    /// The store restarts with its data.
    RestartWithData,
    /// The store restarts without its data.
    RestartEmpty,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cut, Self::Hang, Self::LoseReplies, Self::RestartWithData, Self::RestartEmpty];
}

/// Breaks a store on command, with one fault at a time. Faults affect all clients except bystanders.
pub trait Faults: Sync {
    /// The faults that it can cause.
    fn offers(&self) -> &[Fault];

    /// Begins a fault. A restart is over when this returns.
    fn begin(&self, fault: Fault);

    /// How many requests, connections or servers the present or last fault has affected.
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
