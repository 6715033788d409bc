//! Clients, and what the store tells them.

/// An event for one client.
pub type Notice = lock_rules::Notice<ClientId>;

/// A place in the queue of a lock.
pub(crate) type Place = lock_rules::Place<ClientId>;

/// A client, as the store tells it from others. The store only uses it to notify the client whose claim queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(u64);

impl ClientId {
    /// The client with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}
