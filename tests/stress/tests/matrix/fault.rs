//! The kinds of faults.

use std::time::Duration;

use serde::Serialize;
use stress::cast::TTL;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// A process that uses locks is killed.
    KillClient,
    /// One that holds a lock is suspended past its lease.
    StopClient,
    /// A server is killed, and comes back with its data: the primary of sentinels after its fail-over, a follower of etcd or ZooKeeper.
    KillServer,
    /// A server is suspended.
    StopServer,
    /// The connections of a process are cut.
    Cut,
    /// What a process and its servers say to each other arrives late.
    Delay,
    /// A process hears no answers, and its connections stay open.
    HalfOpen,
    /// The memory of a server is full.
    FullMemory,
    /// The disk of a server, or of the clients' file, is full. An etcd cluster says that it has no room.
    FullDisk,
    /// A server evicts all its keys.
    Eviction,
    /// The wall clock of the processes that use locks steps forward and back.
    StepClient,
    /// The wall clock of the servers steps back.
    StepServer,
    /// Another server takes the place of the one that leads.
    FailOver,
}

impl Fault {
    pub(crate) const ALL: [Self; 13] = [
        Self::KillClient,
        Self::StopClient,
        Self::KillServer,
        Self::StopServer,
        Self::Cut,
        Self::Delay,
        Self::HalfOpen,
        Self::FullMemory,
        Self::FullDisk,
        Self::Eviction,
        Self::StepClient,
        Self::StepServer,
        Self::FailOver,
    ];
}

/// How long a fault of the network or of a server lasts: less than a lease.
pub(crate) const LASTS: Duration = TTL.saturating_mul(3).checked_div(5).unwrap();
