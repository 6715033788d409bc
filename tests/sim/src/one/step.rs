//! The requests that one of a station takes where each entry ends with a lease of its own.

use lock_core::Moment;

use super::words::{Ask, Say};

/// A request that is in flight for what a station has asked for.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) ask: Ask,
    pub(super) sent: Moment,
    /// The term of the latest answer by then.
    pub(super) term: Option<u64>,
    pub(super) rounds: u32,
}

/// What comes next.
pub(super) enum Next {
    Step(Step),
    Told(Say),
}

/// When something was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) now: Moment,
    /// When what the station has asked for was handed out.
    pub(super) since: Moment,
}
