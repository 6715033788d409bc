//! How long a store keeps what nobody renews.

use std::time::Duration;

use lock_core::inspect::REMEMBERED_MIN;
use lock_core::{Moment, Ttl};

/// The longest lease of a place in the queue, and of a lock that was handed over and not renewed yet.
///
/// Chosen: far above the pauses of a healthy process, far below what waiters accept at the head of a queue.
pub const PLACE_MAX: Duration = Duration::from_secs(10);

/// The shortest life of a tombstone. Chosen: longer than any request is in flight, however short the ttl is.
pub const TOMBSTONE_MIN: Duration = Duration::from_secs(10);

/// How long a place lasts unless it is refreshed, and a hand-over unless it is renewed.
pub fn place_for(ttl: Ttl) -> Duration {
    ttl.get().min(PLACE_MAX)
}

/// How long a tombstone refuses late claims of this ttl.
pub fn tombstone_for(ttl: Ttl) -> Duration {
    ttl.get().max(TOMBSTONE_MIN)
}

/// How long the tombstone of a replaced owner refuses claims. Its last claim was answered before it was granted, so only a copy of
/// that request can be late.
pub const REPLACED_FOR: Duration = TOMBSTONE_MIN;

/// Until when a store remembers who revoked a lease that would have ended at `end`.
pub fn remembered_until(now: Moment, end: Moment) -> Moment {
    end.max(now + REMEMBERED_MIN)
}
