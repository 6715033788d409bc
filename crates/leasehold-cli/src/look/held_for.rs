//! For how long a lease has been held.

use std::time::Duration;

use lock_core::inspect::Held;

use crate::host::started;

/// For how long a lease has been held, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldFor {
    pub(super) at_least: Option<Duration>,
    pub(super) at_most: Option<Duration>,
}

impl HeldFor {
    /// What one look tells.
    pub(super) fn at_a_glance(held: &Held) -> Self {
        Self { at_least: None, at_most: started(&held.holder) }
    }
}
