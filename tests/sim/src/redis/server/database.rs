//! Everything that a server stores.

use std::collections::BTreeMap;

use lock_core::{LockName, Owner};

use super::keys::Keys;
use crate::one::Millis;

/// The identity of one run of a server.
pub(crate) type RunId = u64;

/// Everything that a server stores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Database {
    pub(crate) locks: BTreeMap<LockName, Keys>,
    pub(crate) counter: Option<u64>,
    pub(crate) marker: Option<RunId>,
    /// Until when no free lock is granted, because leases may have been forgotten.
    pub(crate) dwell: Option<Millis>,
}

impl Database {
    /// Every owner that holds or waits here.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.locks.values().flat_map(Keys::owners)
    }
}

/// How much the answers say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What the scripts of Redis say.
    #[default]
    AsRedis,
    /// Also whether others wait, and the highest token that was drawn.
    Full,
}
