//! What a client learns of a server after its greeting.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::hash_slot::HashSlot;

/// What a client knows now, for all connections that lead to the same server.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The longest ttl of any client, in milliseconds. It only rises.
    longest: AtomicU64,
    /// The hash slots that were verified, if it is a primary of a cluster.
    slots: RwLock<BTreeSet<HashSlot>>,
}

impl Learned {
    pub(crate) fn longest(&self) -> u64 {
        self.longest.load(Ordering::Acquire)
    }

    /// Some client has this ttl, in milliseconds.
    pub(crate) fn raise(&self, longest: u64) {
        self.longest.fetch_max(longest, Ordering::AcqRel);
    }

    pub(crate) fn has(&self, slot: HashSlot) -> bool {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).contains(&slot)
    }

    pub(crate) fn add(&self, slot: HashSlot) {
        self.slots.write().unwrap_or_else(PoisonError::into_inner).insert(slot);
    }

    /// A hash slot has left the primary, or the server is no primary any more. Either may come back with less data.
    pub(crate) fn clear(&self) {
        self.slots.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What was learned is no part of what a server is.
impl PartialEq for Learned {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Learned {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_slot_is_remembered_on_its_own() {
        let verified = Learned::default();
        let [one, other] = [b"a", b"b"].map(|key| HashSlot::of(key));
        verified.add(one);
        assert!(verified.has(one) && !verified.has(other));
        verified.add(other);
        assert!(verified.has(one) && verified.has(other));
        verified.clear();
        assert!(!verified.has(one) && !verified.has(other));
    }
}
