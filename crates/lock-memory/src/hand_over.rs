//! Locks that passed from one client to another, and the names of clients.

use std::time::Duration;

use lock_core::{Event, Lease};

/// The client that asks. The store only uses it to send a hand-over to the client whose claim queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(u64);

impl ClientId {
    /// The client with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// A lock that went to a waiter while somebody else was asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The client whose claim had queued.
    pub client: ClientId,
    /// The lease that its owner holds now.
    pub lease: Lease,
    /// How long the store keeps it, from now.
    pub valid_for: Duration,
    /// Whether others wait for the lock.
    pub wanted: bool,
}

/// A hint for one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Who is told.
    pub client: ClientId,
    /// What it is told.
    pub event: Event,
}

/// What clients have to be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    pub(crate) hand_overs: Vec<HandOver>,
    pub(crate) hints: Vec<Hint>,
}
