//! What kind of lease is wanted: who else may hold the lock at the same time, and how long the store keeps the lease.

use std::fmt;
use std::num::NonZeroU32;

use serde::Serialize;

use crate::Ttl;

/// Who else may hold the lock at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Nobody else.
    #[default]
    Exclusive,
    /// Everybody else who asks for this mode.
    Shared,
    /// As many others as there are permits for.
    Permits {
        /// How many permits this lease takes: at most `limit`.
        count: NonZeroU32,
        /// How many there are.
        limit: NonZeroU32,
    },
}

impl Mode {
    /// The kind of this mode, whatever its numbers.
    pub const fn kind(self) -> ModeKind {
        match self {
            Self::Exclusive => ModeKind::Exclusive,
            Self::Shared => ModeKind::Shared,
            Self::Permits { .. } => ModeKind::Permits,
        }
    }
}

/// A [`Mode`] without its numbers: what a store can or cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModeKind {
    /// [`Mode::Exclusive`].
    Exclusive,
    /// [`Mode::Shared`].
    Shared,
    /// [`Mode::Permits`].
    Permits,
}

impl fmt::Display for ModeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::Permits => "permits",
        })
    }
}

/// What kind of lease is wanted. Turns share a lease only if their terms are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// Who else may hold the lock at the same time.
    pub mode: Mode,
    /// How long the store keeps the lease when nobody renews it.
    pub ttl: Ttl,
}

impl Terms {
    /// An exclusive lease with this ttl.
    pub const fn exclusive(ttl: Ttl) -> Self {
        Self { mode: Mode::Exclusive, ttl }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named_in_messages() {
        let permit = NonZeroU32::MIN;
        let modes = [Mode::default(), Mode::Shared, Mode::Permits { count: permit, limit: permit }];
        assert_eq!(modes.map(|mode| mode.kind().to_string()), ["exclusive", "shared", "permits"]);
    }
}
