//! What a client learns of a server after its greeting.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash_slot::HashSlot;

/// What a client knows now, for all connections that lead to the same server.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The longest ttl of any client, in milliseconds. It only rises.
    longest: AtomicU64,
    /// The hash slots that were verified, if it is a primary of a cluster: one bit for each.
    slots: Vec<AtomicU64>,
}

impl Learned {
    pub(crate) fn of_cluster() -> Self {
        Self { slots: (0..HashSlot::COUNT / 64).map(|_| AtomicU64::new(0)).collect(), ..Self::default() }
    }

    pub(crate) fn longest(&self) -> u64 {
        self.longest.load(Ordering::Acquire)
    }

    /// Some client has this ttl, in milliseconds.
    pub(crate) fn raise(&self, longest: u64) {
        self.longest.fetch_max(longest, Ordering::AcqRel);
    }

    pub(crate) fn has(&self, slot: HashSlot) -> bool {
        let (word, bit) = place(slot);
        self.slots.get(word).is_some_and(|bits| bits.load(Ordering::Acquire) & bit != 0)
    }

    pub(crate) fn add(&self, slot: HashSlot) {
        let (word, bit) = place(slot);
        self.slots.get(word).iter().for_each(|bits| _ = bits.fetch_or(bit, Ordering::AcqRel));
    }

    /// A hash slot has left the primary, or the server is no primary any more. Either may come back with less data.
    pub(crate) fn clear(&self) {
        self.slots.iter().for_each(|bits| bits.store(0, Ordering::Release));
    }
}

/// The word of a hash slot, and its bit there.
fn place(slot: HashSlot) -> (usize, u64) {
    (usize::from(slot.get() / 64), 1 << (slot.get() % 64))
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
        let verified = Learned::of_cluster();
        let [one, other] = [b"a", b"b"].map(|key| HashSlot::of(key));
        verified.add(one);
        assert!(verified.has(one) && !verified.has(other));
        verified.add(other);
        assert!(verified.has(one) && verified.has(other));
        verified.clear();
        assert!(!verified.has(one) && !verified.has(other));
    }
}
