//! Which hash slots were verified at a primary of a cluster.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash_slot::HashSlot;

/// The hash slots that were verified since the primary was greeted: one bit for each.
pub(crate) struct Verified(Vec<AtomicU64>);

impl Verified {
    pub(crate) fn has(&self, slot: HashSlot) -> bool {
        let (word, bit) = place(slot);
        self.0.get(word).is_some_and(|bits| bits.load(Ordering::Acquire) & bit != 0)
    }

    pub(crate) fn add(&self, slot: HashSlot) {
        let (word, bit) = place(slot);
        self.0.get(word).iter().for_each(|bits| _ = bits.fetch_or(bit, Ordering::AcqRel));
    }

    /// A hash slot has left the primary, or the server is no primary any more. Either may come back with less data.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|bits| bits.store(0, Ordering::Release));
    }
}

/// The word of a hash slot, and its bit there.
fn place(slot: HashSlot) -> (usize, u64) {
    (usize::from(slot.get() / 64), 1 << (slot.get() % 64))
}

impl Default for Verified {
    fn default() -> Self {
        Self((0..HashSlot::COUNT / 64).map(|_| AtomicU64::new(0)).collect())
    }
}

/// What was verified is no part of what a server is.
impl PartialEq for Verified {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Verified {}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verified")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_slot_is_remembered_on_its_own() {
        let verified = Verified::default();
        let [one, other] = [b"a", b"b"].map(|key| HashSlot::of(key));
        verified.add(one);
        assert!(verified.has(one) && !verified.has(other));
        verified.add(other);
        assert!(verified.has(one) && verified.has(other));
        verified.clear();
        assert!(!verified.has(one) && !verified.has(other));
    }
}
