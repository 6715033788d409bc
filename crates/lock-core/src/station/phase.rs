//! Whether a station still takes waiters.

/// Whether the client goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    Closed,
}
