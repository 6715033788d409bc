//! Who is at the other end of a connection.

use crate::script::Counting;

/// What a server is to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing that is known of.
    OnItsOwn,
    /// A node of a quorum.
    InQuorum,
}

/// Who is at the other end of a connection, as it said when it was greeted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The server's name for this run of it.
    pub(crate) run_id: String,
    /// The server's name for the history of its data; nothing where it has none. It is another after each promotion.
    pub(crate) replid: String,
    /// How it makes room when its memory is full, where that may drop locks and it was asked.
    pub(crate) evicts: Option<String>,
    /// Whether it votes in a quorum, where it was met on its own.
    pub(crate) place: Place,
    /// How tokens are drawn over this connection.
    pub(crate) counting: Counting,
}

impl Peer {
    /// The server behind a connection that the user passed in.
    #[cfg(any(feature = "async", feature = "r2d2"))]
    pub(crate) const UNKNOWN: &'static Self = &Self {
        run_id: String::new(),
        replid: String::new(),
        evicts: None,
        place: Place::OnItsOwn,
        counting: Counting::Clock,
    };

    /// What a counter is verified for: one history of one run.
    pub(crate) fn incarnation(&self) -> String {
        format!("{}:{}", self.run_id, self.replid)
    }
}
