//! What is sent over the network, and the identifiers of the senders.

use std::fmt::Debug;

use lock_core::StoreEvent;

use crate::clock::Time;

/// Names a connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

/// Names a request, so that its answer finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(pub(crate) u64);

/// Names a process; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u64);

/// Names a store by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreId(pub(crate) usize);

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// To the store.
    There,
    /// To the client.
    Back,
}

/// What clients and one kind of store say to each other.
pub(crate) trait Talk: Debug {
    /// A request to a store.
    type Ask: Clone + Debug;
    /// The answer of a store.
    type Say: Clone + Debug;
}

/// Something on its way over a connection.
#[derive(Clone, Debug)]
pub(crate) enum Packet<A, S> {
    /// To the server.
    Ask(Tag, A),
    /// To the client.
    Say(Tag, S),
    /// To the client, pushed.
    Push(StoreEvent),
    /// The client sees that the connection is gone.
    CutAtClient,
    /// The server sees that the connection is gone.
    CutAtServer,
}

/// What happens to a packet that is sent into a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    /// It arrives when the partition is over.
    Late,
    Either,
}

/// Nothing passes until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) until: Time,
    pub(crate) fate: Fate,
}
