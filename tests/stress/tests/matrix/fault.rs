//! The kinds of faults.

use std::time::Duration;

use serde::Serialize;
use stress::cast::TTL;

/// One kind of fault, with the same meaning in all settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// A process that uses locks is killed.
    KillClient,
    /// One is suspended past its lease.
    StopClient,
    /// A server is killed, and comes back with its data.
    KillServer,
    /// A server is suspended.
    StopServer,
    /// The connections of a process are cut.
    Cut,
    /// What a process and its servers say to each other arrives late.
    Delay,
    /// A process hears no answers, and its connections stay open.
    HalfOpen,
    /// The memory or the disk of a server is full.
    Full,
    /// Another server takes the place of the one that leads.
    FailOver,
}

impl Fault {
    pub(crate) const ALL: [Self; 9] = [
        Self::KillClient,
        Self::StopClient,
        Self::KillServer,
        Self::StopServer,
        Self::Cut,
        Self::Delay,
        Self::HalfOpen,
        Self::Full,
        Self::FailOver,
    ];
}

/// How long a fault of the network or of a server lasts: less than a lease.
pub(crate) const LASTS: Duration = TTL.saturating_mul(3).checked_div(5).unwrap();
