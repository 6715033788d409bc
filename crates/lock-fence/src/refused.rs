//! What a resource answers to a holder that comes too late.

use lock_core::FencingToken;

/// The token is lower than one that the resource has seen: a later holder of the lock has been there, and nothing was changed.
///
/// Stop the work. To try again, acquire the lock again, and start from what the resource has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "fencing token {token} comes too late: the resource has seen {highest}, that of a later holder; stop, and acquire the lock again"
)]
pub struct Refused {
    /// The token that was refused.
    pub token: FencingToken,
    /// The highest token that the resource has seen.
    pub highest: FencingToken,
}
