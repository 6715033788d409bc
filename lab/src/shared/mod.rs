//! What the scenes share: `place`, `raw` (a store as naive locks use it) · `ground`, `children` (where a scene happens, and how
//! nothing is left behind) · `story` (its stages and their results) · `chart`, `tell` (how it is told) · `failure` (how it fails).

pub(crate) mod chart;
pub(crate) mod children;
pub(crate) mod failure;
pub(crate) mod ground;
pub(crate) mod place;
pub(crate) mod raw;
pub(crate) mod story;
pub(crate) mod tell;

use std::time::Duration;

/// A duration for programs.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
