//! The admission of a lease, from which its first renewal follows.

use std::time::Duration;

use crate::{Lease, Moment};

/// A lease that was granted for less than its ttl is renewed this long after its admission. Chosen: most holds are shorter,
/// so a chain of hand-overs costs two requests a turn, and no outage that begins later finds a shortened lease.
pub(super) const SOON: Duration = Duration::from_millis(100);

/// The admission of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// When the lease was admitted.
    pub at: Moment,
    /// When its grant was asked for: its validity counts from here.
    pub asked_at: Moment,
    /// How long it was granted for. A lease that was handed over lasts no longer than a place until its first renewal.
    pub valid_for: Duration,
}

impl Admission {
    /// When the first renewal is due, if the lease was granted for less than its ttl.
    pub(super) fn soon(&self, lease: &Lease) -> Option<Moment> {
        (self.valid_for < lease.terms.ttl.get()).then(|| self.at + SOON)
    }
}
